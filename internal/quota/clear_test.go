package quota

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
)

// clearOnce is one ClearCounters that is committed.
func clearOnce(t *testing.T, db *testDB, customers []int64, keepOwn bool, most int) (done Cleared) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), db.pool, func(tx pgx.Tx) (err error) {
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
			execSQL(t.Context(), t, db, `INSERT INTO counters (shard, customer, meter, attribute, state, at, hour, units, total)
				VALUES ($1, $2, 1, $3, '{1,2,1}', 100, 3600000000, $4, $4)`, Shard(c), c, attribute, units)
		}
	}
}

// counted is the number of counters, of those with anything but the account, and of units.
func counted(t *testing.T, db *testDB) (is [3]int) {
	t.Helper()
	if err := db.pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE true`+unclean+`),
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
			execSQL(t.Context(), t, db, "INSERT INTO usage (shard, customer, meter, hour, admitted) VALUES ($1, 1, 1, 3600000000, 10)", Shard(1))
			tx, err := db.pool.Begin(t.Context())
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
	execSQL(t.Context(), t, db, "UPDATE counters SET at = 200 WHERE customer = 2 AND attribute = 'ip=2'")
	execSQL(t.Context(), t, db, "INSERT INTO counters (shard, customer, meter) VALUES ($1, 3, 1)", Shard(3)) // never charged
	for since, want := range map[int64][]int64{-1: {4}, 0: {3, 4}, 99: {3, 4}, 100: {1, 3, 4}, 199: {1, 3, 4}, 200: {1, 2, 3, 4}} {
		var idle []int64
		err := pgx.BeginFunc(t.Context(), db.pool, func(tx pgx.Tx) (err error) {
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
	db, ctx := newTestDB(t), pgtest.Context(t)
	conn, err := postgres.Connect(ctx, db.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	set := func() (n int) {
		for name, value := range PoolSettings {
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
			if n := set(); n != len(PoolSettings) {
				t.Errorf("%s: %d settings of %d", name, n, len(PoolSettings))
			}
			return nil
		})
		if err != nil || set() != before {
			t.Errorf("%s: %v, %d settings afterwards, %d before", name, err, set(), before)
		}
	}
}

// clearStatements are those of this file, by whose text the hot tables are reached, and
// of each the columns that its look-ups must compare.
func clearStatements() (statements map[string]string, key map[string][]string) {
	whole, customers := []string{"shard", "customer", "meter", "attribute"}, []string{"shard", "customer"}
	statements = map[string]string{
		"idle": idleSinceSQL, "meters of": metersOfSQL, "in use": inUseSQL, "lock all": lockAllSQL, "lock": lockUncleanSQL, "any left": anyLeftSQL, "left": uncleanLeftSQL,
		"book": bookSQL, "remove": removeSQL, "empty": emptySQL,
	}
	key = map[string][]string{
		"idle": customers, "meters of": customers, "in use": whole[:3], "lock all": customers, "lock": customers, "any left": customers, "left": customers,
		"book": whole, "remove": whole, "empty": whole,
	}
	return statements, key
}

// reached collects how a plan comes to the rows of hot tables.
func (p *planNode) reached() (ways []planNode) {
	for i := range p.Plans {
		ways = append(ways, p.Plans[i].reached()...)
	}
	if keyOf[p.Relation] != nil && p.Type != "ModifyTable" {
		ways = append(ways, *p)
	}
	return ways
}

// TestPlansOfClearing: as TestPlansOfTheReads, for what reaches all counters of customers
// by the beginning of their key.
func TestPlansOfClearing(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	statements, key := clearStatements()
	check := func(p *planned, when string) {
		for name, args := range p.args {
			var text []byte
			explain := "EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE " + pgx.Identifier{name}.Sanitize() + "(" + args + ")"
			if err := p.conn.QueryRow(ctx, explain, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
				t.Fatalf("%s, %s: %v", when, name, err)
			}
			var plans []struct{ Plan planNode }
			if err := json.Unmarshal(text, &plans); err != nil {
				t.Fatal(err)
			}
			ways := plans[0].Plan.reached()
			for _, way := range ways {
				for _, column := range key[name] {
					if !strings.HasPrefix(way.Type, "Index") || !strings.Contains(way.IndexCond, "counters."+column+" = ") &&
						!strings.Contains(way.IndexCond, "c."+column+" = ") {
						t.Errorf("%s, %s: by no %s\n%s", when, name, column, text)
					}
				}
			}
			if len(ways) == 0 {
				t.Errorf("%s, %s: no hot table in the plan\n%s", when, name, text)
			}
		}
	}
	execSQL(ctx, t, db, "ALTER TABLE counters SET (autovacuum_enabled = off)")
	var sessions []*planned
	for _, stage := range []struct {
		rows    int
		analyze bool
	}{{0, false}, {1, true}, {3, false}, {3, true}, {2000, false}, {20_000, false}, {20_000, true}} {
		execSQL(ctx, t, db, fillSQL, stage.rows)
		if stage.analyze {
			execSQL(ctx, t, db, "ANALYZE counters")
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			settings := maps.Clone(PoolSettings)
			settings["plan_cache_mode"] = mode
			conn, err := postgres.Connect(ctx, db.url, settings)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			sessions = append(sessions, prepareAll(ctx, t, conn, statements))
		}
		for i, s := range sessions {
			check(s, fmt.Sprintf("%+v, session %d", stage, i))
		}
	}
}
