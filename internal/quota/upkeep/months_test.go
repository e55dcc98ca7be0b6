package upkeep

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// in2031 is 2031-11-15T12:00:00Z.
var in2031 = time.Date(2031, 11, 15, 12, 0, 0, 0, time.UTC)

func (db *testDB) partitioner(at time.Time) *Partitioner {
	p := db.hasty(at)
	p.lockWait, p.limit = "2min", "3min"
	return p
}

// hasty waits for nobody long, as the product does.
func (db *testDB) hasty(at time.Time) *Partitioner {
	return NewPartitioner(db.Pool, quotatest.NewClock(at.UnixMicro()).Now, nil)
}

// book books units of a customer in an hour, as a worker does.
func (db *testDB) book(ctx context.Context, customer int64, at time.Time) error {
	_, err := db.Pool.Exec(ctx, `INSERT INTO usage (shard, customer, meter, hour, admitted) VALUES (1, $1, 1, $2, 5)
		ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET admitted = usage.admitted + excluded.admitted`, customer, at.Truncate(time.Hour).UnixMicro())
	return err
}

// where says in which partitions a customer's units are.
func (db *testDB) where(ctx context.Context, t *testing.T, customer int64) (all string) {
	t.Helper()
	err := db.Pool.QueryRow(ctx, `SELECT coalesce(string_agg(name || ' ' || units, ', ' ORDER BY name), '') FROM (
		SELECT tableoid::regclass::text AS name, sum(admitted) AS units FROM usage WHERE customer = $1 GROUP BY 1) u`, customer).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The running month and three more are made, once, whoever makes them. What was in the default
// partition is in its month then, and what comes goes there. Months that a partition has are left.
func TestPartitioner(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	hours := []time.Time{in2031, in2031.AddDate(0, 0, 16), in2031.AddDate(0, 3, 0), in2031.AddDate(0, 4, 0), in2031.AddDate(0, -1, 0), time.UnixMicro(0)}
	for _, at := range hours {
		if err := db.book(ctx, 1, at); err != nil {
			t.Fatal(err)
		}
	}
	db.Exec(ctx, t, `INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason) VALUES (1, 1, 1, $1, gen_random_uuid(), 3, 1, '')`,
		in2031.UnixMicro())
	if got := db.where(ctx, t, 1); got != "usage_default 25, usage_first 5" {
		t.Errorf("before months are made: %s", got)
	}
	var made atomic.Int64
	var nodes sync.WaitGroup
	for range 2 {
		nodes.Go(func() {
			for made.Load() < 12 { // a node that finds another at it does not wait
				n, err := db.partitioner(in2031).Make(ctx)
				if err != nil {
					t.Error(err)
				}
				if made.Add(int64(n)); n == 0 {
					return
				}
			}
		})
	}
	nodes.Wait()
	if n, err := db.partitioner(in2031).Make(ctx); err != nil || made.Load()+int64(n) != 12 {
		t.Errorf("made %d and %d, %v", made.Load(), n, err)
	}
	if n, err := db.partitioner(in2031).Make(ctx); err != nil || n != 0 {
		t.Errorf("made %d again, %v", n, err)
	}
	if n, err := db.partitioner(time.UnixMicro(0)).Make(ctx); err != nil || n != 0 {
		t.Errorf("made %d of months that the first partition has, %v", n, err)
	}
	const moved = "usage_2031_11 5, usage_2031_12 5, usage_2032_02 5, usage_default 10, usage_first 5"
	if got := db.where(ctx, t, 1); got != moved {
		t.Errorf("when months are made: %s, want %s", got, moved)
	}
	for _, at := range hours {
		if err := db.book(ctx, 1, at); err != nil {
			t.Fatal(err)
		}
	}
	const twice = "usage_2031_11 10, usage_2031_12 10, usage_2032_02 10, usage_default 20, usage_first 10"
	if got := db.where(ctx, t, 1); got != twice {
		t.Errorf("booked again: %s, want %s", got, twice)
	}
	if n, err := db.partitioner(in2031.AddDate(0, 1, 0)).Make(ctx); err != nil || n != 3 {
		t.Errorf("a month later made %d, %v", n, err)
	}
	if got := db.where(ctx, t, 1); got != "usage_2031_11 10, usage_2031_12 10, usage_2032_02 10, usage_2032_03 10, usage_default 10, usage_first 10" {
		t.Errorf("a month later: %s", got)
	}
	var of string
	if err := db.Pool.QueryRow(ctx, `SELECT string_agg(tableoid::regclass || ' ' || cost, ', ') FROM adjustments`).Scan(&of); err != nil ||
		of != "adjustments_2031_11 3" {
		t.Errorf("the adjustment is in %s, %v", of, err)
	}
	var stored int
	err := db.Pool.QueryRow(ctx, `SELECT count(*) FROM pg_class c JOIN pg_index x ON x.indrelid = c.oid AND x.indisprimary AND x.indnatts = 5 AND x.indnkeyatts = 4
		WHERE c.relname ~ '^usage_203' AND c.reloptions = '{fillfactor=80}'`).Scan(&stored)
	if err != nil || stored != 5 {
		t.Errorf("%d months are stored as usage is, %v", stored, err)
	}
}

// Months are made while units are booked, in months that are made and in others. All of them are
// there in the end.
func TestMonthsAreMadeWhileUnitsAreBooked(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	const customers, times = 3, 150
	var bookers sync.WaitGroup
	for customer := range int64(customers) {
		bookers.Go(func() {
			for n := range times {
				err := db.book(ctx, customer, in2031.AddDate(0, n%5, 0))
				for postgres.Retryable(err) { // as a worker does: its month was made meanwhile
					err = db.book(ctx, customer, in2031.AddDate(0, n%5, 0))
				}
				if err != nil {
					t.Errorf("booking %d: %v", n, err)
					return
				}
			}
		})
	}
	made := 0
	testkit.Eventually(t, "months are made", func() bool {
		n, err := db.hasty(in2031).Make(ctx)
		if err != nil {
			t.Log(err) // it waits for nobody long, and tries again
		}
		made += n
		return made == 12
	})
	bookers.Wait()
	for customer := range int64(customers) {
		var units int64
		if err := db.Pool.QueryRow(ctx, "SELECT sum(admitted)::bigint FROM usage WHERE customer = $1", customer).Scan(&units); err != nil || units != 5*times {
			t.Errorf("customer %d has %d units, want %d, %v: %s", customer, units, 5*times, err, db.where(ctx, t, customer))
		}
	}
	if got, want := db.where(ctx, t,
		1), fmt.Sprintf("usage_2031_11 %[1]d, usage_2031_12 %[1]d, usage_2032_01 %[1]d, usage_2032_02 %[1]d, usage_default %[1]d", times); got != want {
		t.Errorf("units are in %s, want %s", got, want)
	}
}

// Somebody has rows of the default partition. A month waits a moment, holds up nobody for longer, and
// is made later.
func TestMonthsWaitForNobodyLong(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	tx, err := db.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `INSERT INTO usage (shard, customer, meter, hour, admitted) VALUES (1, 1, 1, $1, 1)`, in2031.UnixMicro()); err != nil {
		t.Fatal(err)
	}
	if made, err := db.hasty(in2031).Make(ctx); session.StateOf(err) != lockTimeout || made != 0 {
		t.Errorf("made %d: %v", made, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if made, err := db.partitioner(in2031).Make(ctx); err != nil || made != 12 || db.where(ctx, t, 1) != "usage_2031_11 1" {
		t.Errorf("made %d: %v; units are in %s", made, err, db.where(ctx, t, 1))
	}
}
