package upkeep

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
)

// clearOnce is one ClearCounters that is committed.
func clearOnce(t *testing.T, db *testDB, customers []int64, keepOwn bool, most int) (done Cleared) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) (err error) {
		done, err = ClearCounters(t.Context(), tx, customers, keepOwn, most)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// unclear gives customers a counter of their own with 3 units in the running hour, and
// two of values.
func unclear(t *testing.T, db *testDB, customers ...int64) {
	t.Helper()
	for _, c := range customers {
		for _, attribute := range []string{"", "ip=1", "ip=2"} {
			units := 0
			if attribute == "" {
				units = 3
			}
			db.Exec(t.Context(), t, `INSERT INTO counters (shard, customer, meter, attribute, state, at, hour, units, total)
				VALUES ($1, $2, 1, $3, '{1,2,1,9}', 100, 3600000000, $4, $4)`, model.Shard(c), c, attribute, units)
		}
	}
}

// counted is the number of counters, of those with anything but the account, and of units.
func counted(t *testing.T, db *testDB) (is [3]int) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE true`+unclean+`),
		(SELECT coalesce(sum(admitted), 0) FROM usage) FROM counters`).Scan(&is[0], &is[1], &is[2]); err != nil {
		t.Fatal(err)
	}
	return is
}

func TestClearCounters(t *testing.T) {
	for _, c := range []struct {
		keepOwn bool
		most    int
		want    []Cleared
		is      [3]int
	}{
		{false, 100, []Cleared{{6, 6, false, false}, {}}, [3]int{3, 3, 6}},
		{false, 4, []Cleared{{4, 4, true, false}, {2, 2, false, false}}, [3]int{3, 3, 6}},
		{true, 100, []Cleared{{6, 4, false, false}, {}}, [3]int{5, 3, 6}},
		{true, 2, []Cleared{{2, 1, true, false}, {2, 1, true, false}, {2, 2, false, false}, {}}, [3]int{5, 3, 6}},
	} {
		t.Run(fmt.Sprint(c.keepOwn, c.most), func(t *testing.T) {
			db := newTestDB(t)
			unclear(t, db, 1, 2, 3)
			for i, want := range c.want {
				if got := clearOnce(t, db, []int64{3, 1}, c.keepOwn, c.most); got != want {
					t.Errorf("%d: %+v, want %+v", i, got, want)
				}
			}
			if is := counted(t, db); is != c.is {
				t.Errorf("%v, want %v", is, c.is)
			}
		})
	}
}

// A held counter is left, and told of; units are booked on top of what is there.
func TestClearCountersWaitsForNobody(t *testing.T) {
	for _, keepOwn := range []bool{false, true} {
		t.Run(fmt.Sprint(keepOwn), func(t *testing.T) {
			db := newTestDB(t)
			unclear(t, db, 1, 2)
			db.Exec(t.Context(), t, "INSERT INTO usage (shard, customer, meter, hour, admitted) VALUES ($1, 1, 1, 3600000000, 10)", model.Shard(1))
			tx, err := db.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			if _, err := tx.Exec(t.Context(), "SELECT FROM counters WHERE customer = 1 AND attribute = '' FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
			if done := clearOnce(t, db, []int64{1, 2}, keepOwn, 100); done.Rows != 5 || !done.Left {
				t.Errorf("%+v", done)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if done := clearOnce(t, db, []int64{1, 2}, keepOwn, 100); done.Rows != 1 || done.Left {
				t.Errorf("%+v", done)
			}
			if is := counted(t, db); is[1] != 0 || is[2] != 16 {
				t.Errorf("%v", is)
			}
		})
	}
}

func TestIdleSince(t *testing.T) {
	db := newTestDB(t)
	unclear(t, db, 1, 2)
	db.Exec(t.Context(), t, "UPDATE counters SET at = 200 WHERE customer = 2 AND attribute = 'ip=2'")
	db.Exec(t.Context(), t, "INSERT INTO counters (shard, customer, meter) VALUES ($1, 3, 1)", model.Shard(3)) // never charged
	for since, want := range map[int64][]int64{-1: {4}, 0: {3, 4}, 99: {3, 4}, 100: {1, 3, 4}, 199: {1, 3, 4}, 200: {1, 2, 3, 4}} {
		var idle []int64
		err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) (err error) {
			idle, err = IdleSince(t.Context(), tx, []int64{4, 3, 2, 1}, since)
			return err
		})
		if slices.Sort(idle); err != nil || !slices.Equal(idle, want) {
			t.Errorf("since %d: %v, %v", since, idle, err)
		}
	}
}

// Hot tables are reached by their keys on a pool that has other work, too, and only there.
func TestByKeyIsOfOneTransaction(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	conn, err := postgres.Connect(ctx, db.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	set := func() (n int) {
		for name, value := range session.PoolSettings {
			var is string
			if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&is); err != nil {
				t.Fatal(err)
			}
			if is == value {
				n++
			}
		}
		return n
	}
	before := set()
	for name, do := range map[string]func(pgx.Tx) error{
		"idle": func(tx pgx.Tx) error { _, err := IdleSince(ctx, tx, []int64{1}, 0); return err },
		"clear": func(tx pgx.Tx) error {
			_, err := ClearCounters(ctx, tx, []int64{1}, false, 1)
			return err
		},
	} {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := do(tx); err != nil {
				return err
			}
			if n := set(); n != len(session.PoolSettings) {
				t.Errorf("%s: %d settings of %d", name, n, len(session.PoolSettings))
			}
			return nil
		})
		if err != nil || set() != before {
			t.Errorf("%s: %v, %d settings afterwards, %d before", name, err, set(), before)
		}
	}
}
