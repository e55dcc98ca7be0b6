package quota

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// dailyTarget is billed by the day, from 17 minutes past midnight on. bound is the end of the
// period that holds quotatest.Epoch.
func dailyTarget(customer int64, limits ...*model.Limit) (target *model.Target, bound int64) {
	target = quotatest.Target(customer, 1, 1, limits...)
	target.Interval = calendar.Interval{Unit: calendar.Days, Count: 1}
	_, bound = target.Period(quotatest.Epoch)
	return target, bound
}

// counter is a customer's own counter, on the first meter.
func (db *testDB) counter(t *testing.T, customer int64) quotatest.CounterRow {
	t.Helper()
	all, err := db.Counters(testkit.Context(t), customer)
	if err != nil {
		t.Fatal(err)
	}
	return all[model.CounterKey{Customer: customer, Meter: 1}]
}

// usageBefore is what is booked for a customer in finished hours that begin before an instant, and
// in the running hour if it does.
func (db *testDB) usageBefore(t *testing.T, customer, before int64) (finished, running int64) {
	t.Helper()
	all, err := db.Admitted(testkit.Context(t), customer)
	if err != nil {
		t.Fatal(err)
	}
	for key, units := range all {
		if key.Hour < before {
			finished += units
		}
	}
	if own := db.counter(t, customer); own.Hour < before {
		running = own.Units
	}
	return finished, running
}

func fencesOf(bound int64, targets ...*model.Target) (fences []locked.Fence) {
	for _, target := range targets {
		fences = append(fences, locked.Fence{Target: target, Boundary: bound})
	}
	return fences
}

func (e *Engine) fence(ctx context.Context, t *testing.T, fences []locked.Fence) {
	t.Helper()
	for i, err := range e.Fence(ctx, fences) {
		if err != nil {
			t.Fatalf("fence %d: %v", i, err)
		}
	}
}

// TestFence: what a fence leaves of each kind of counter; the same fence again leaves all alone.
func TestFence(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	limits := []*model.Limit{quotatest.Window(t, "a", 100, "5m"), quotatest.Bucket(t, "b", 60, "1h", 100)}
	var targets []*model.Target
	var bound int64
	for customer := range int64(5) {
		var target *model.Target
		target, bound = dailyTarget(customer+1, limits...)
		targets = append(targets, target)
	}
	missing, warm, held, ahead, turned := targets[0], targets[1], targets[2], targets[3], targets[4]
	clock.Set(bound - 5*60e6)
	for _, target := range []*model.Target{warm, held, turned} {
		if d, err := e.Decide(ctx, target, 10); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	if r, err := e.Reserve(ctx, held, 20, 60e6, model.NewID("reservation", "r")); err != nil || !r.Allowed {
		t.Fatal(r.String(), err)
	}
	clock.Set(bound + 1e6)
	if d, err := e.Decide(ctx, ahead, 10); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	// As by a node that is behind the hour, and was then refused.
	db.Exec(ctx, t, `UPDATE counters SET at = $1 WHERE customer = 5`, bound+5e5)
	before := make(map[int64]quotatest.CounterRow)
	for _, target := range targets {
		before[quotatest.Customer(target)] = db.counter(t, quotatest.Customer(target))
	}
	e.fence(ctx, t, fencesOf(bound, targets...))
	for _, c := range []struct {
		target                *model.Target
		at, booked, units     int64
		versions, used, inUse int64 // of the window and of the bucket, just after the fence
	}{
		{missing, bound, 0, 0, 1, 0, 0},
		{warm, bound, 10, 0, 1, 0, 5},
		{held, bound, 10, 0, 2, 0, 5}, // one for the hold that has expired
		{ahead, bound + 1e6, 0, 10, 0, 10, 10},
		{turned, bound + 5e5, 10, 0, 1, 10, 10}, // all of it is of just now, as its row says
	} {
		customer := quotatest.Customer(c.target)
		row := db.counter(t, customer)
		finished, running := db.usageBefore(t, customer, bound)
		if row.At != c.at || row.Hour != bound || row.Units != c.units || row.Version != before[customer].Version+c.versions || row.Total != c.booked+c.units {
			t.Errorf("customer %d: %+v behind %+v", customer, row, before[customer])
		}
		if finished != c.booked || running != 0 {
			t.Errorf("customer %d: %d booked before the boundary and %d running, want %d", customer, finished, running, c.booked)
		}
		d, err := e.Look(ctx, c.target, 0)
		if err != nil || d.View(0).Used != c.used || d.View(1).Used != c.inUse {
			t.Errorf("customer %d: %s, %v", customer, d.String(), err)
		}
	}
	if n := rowsIn(t, db, "holds"); n != 0 {
		t.Errorf("%d holds are left", n)
	}
	after := make(map[int64]quotatest.CounterRow)
	for customer := range before {
		after[customer] = db.counter(t, customer)
	}
	e.fence(ctx, t, fencesOf(bound, targets...))
	for customer, row := range after {
		if again := db.counter(t, customer); !reflect.DeepEqual(again, row) {
			t.Errorf("customer %d, fenced again: %+v, want %+v", customer, again, row)
		}
	}
	for _, target := range targets { // and all go on from there
		if d, err := e.Decide(ctx, target, 1); err != nil || !d.Allowed || d.At != bound+1e6 {
			t.Errorf("a hit behind the fence: %s, %v", d.String(), err)
		}
	}
	reconciled(t, db)
}

// TestFenceFailsOneByOne: of a counter that is newer than its target, that somebody holds, or that
// cannot be read. The others are fenced, and these when it is over.
func TestFenceFailsOneByOne(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	log := quotatest.Limit(t, "log", "sliding_log", "1d", 1000)
	var targets []*model.Target
	var bound int64
	for customer := range int64(5) {
		target, end := dailyTarget(customer+1, log)
		if d, err := e.Decide(ctx, target, 3); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
		targets, bound = append(targets, target), end
	}
	clock.Set(bound + 1e6)
	db.Exec(ctx, t, `UPDATE counters SET change = 7 WHERE customer = 2`)
	db.Exec(ctx, t, `UPDATE counters SET state = ARRAY[state[1], 1, 100, 0] WHERE customer = 3`)
	tx := db.HoldRow(ctx, t, 4, true)
	errs := e.Fence(ctx, fencesOf(bound, targets...))
	var stale *model.StaleError
	if errs[0] != nil || !errors.As(errs[1], &stale) || stale.Change != 7 || !errors.Is(errs[2], session.ErrInternal) ||
		!errors.Is(errs[3], session.ErrBusy) || errs[4] != nil {
		t.Errorf("told %v", errs)
	}
	for customer, units := range map[int64]int64{1: 3, 2: 0, 3: 0, 4: 0, 5: 3} {
		if finished, _ := db.usageBefore(t, customer, bound); finished != units {
			t.Errorf("customer %d: %d booked, want %d", customer, finished, units)
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	targets[1].Change = 7
	if errs := e.Fence(ctx, fencesOf(bound, targets[1], targets[3])); errs[0] != nil || errs[1] != nil {
		t.Errorf("told %v when it was over", errs)
	}
	reconciled(t, db)
}

// TestFencesOfManyLanes: each is answered in its place, whichever worker did it.
func TestFencesOfManyLanes(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	limit := quotatest.Window(t, "a", 100, "1h")
	_, bound := dailyTarget(1, limit)
	e := db.startEngine(t, quotatest.NewClock(bound), func(o *Options) { o.Lanes = 3 })
	var targets []*model.Target
	for customer := range int64(700) {
		target, _ := dailyTarget(customer+1, limit)
		if targets = append(targets, target); customer%7 == 0 {
			db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, change) VALUES ($1, $2, 1, 9)`, model.Shard(customer+1), customer+1)
		}
	}
	for i, err := range e.Fence(ctx, fencesOf(bound, targets...)) {
		row := db.counter(t, quotatest.Customer(targets[i]))
		var stale *model.StaleError
		if wrong := errors.As(err, &stale); wrong != (i%7 == 0) || !wrong && (err != nil || row.At != bound) {
			t.Errorf("customer %d: %v, %+v", i+1, err, row)
		}
	}
}

// BenchmarkFence fences counters of which each has units of an hour to be booked.
func BenchmarkFence(b *testing.B) {
	db, ctx := newTestDB(b), testkit.Context(b)
	limits := []*model.Limit{quotatest.Window(b, "a", 1e6, "1d"), quotatest.Bucket(b, "b", 60, "1h", 100)}
	_, bound := dailyTarget(1, limits...)
	e := db.startEngine(b, quotatest.NewClock(bound+10e6))
	const meters, some = 4, 200 // as a worker that closes the periods of 50 customers at once
	fill := `INSERT INTO counters (shard, customer, meter, attribute, at, hour, units, total, version, change, state)
		SELECT shard, customer, meter, '', $3, $3, 60, 60, 60, 1, ARRAY[$4::bigint, 60, 1, $3 + 86400000000, $5::bigint, 60, -61, $3 + 86400000000]
		FROM unnest($1::smallint[], $2::bigint[]) AS c(shard, customer), generate_series(1, 4) meter`
	customers := b.N/meters + 1
	var fences []locked.Fence
	for first := 1; first <= customers; first += 10_000 {
		var shards []int16
		var ids []int64
		for customer := int64(first); customer < int64(min(first+10_000, customers+1)); customer++ {
			shards, ids = append(shards, model.Shard(customer)), append(ids, customer)
			for meter := range int32(meters) {
				target, _ := dailyTarget(customer, limits...)
				target.Counters[0].Key.Meter = meter + 1
				fences = append(fences, locked.Fence{Target: target, Boundary: bound})
			}
		}
		if _, err := db.Pool.Exec(ctx, fill, shards, ids, bound-17*60e6, limits[0].ID, limits[1].ID); err != nil {
			b.Fatal(err)
		}
	}
	fences = fences[:b.N]
	b.ResetTimer()
	began := time.Now()
	for len(fences) > 0 {
		n := min(some, len(fences))
		for _, err := range e.Fence(context.Background(), fences[:n]) {
			if err != nil {
				b.Fatal(err)
			}
		}
		fences = fences[n:]
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "counters/s")
	b.StopTimer()
	var left int
	if err := db.Pool.QueryRow(ctx, `SELECT count(*) FROM counters WHERE at >= $1 AND units = 0`, bound).Scan(&left); err != nil || left != b.N {
		b.Fatal(fmt.Sprintf("%d of %d are fenced", left, b.N), err)
	}
}
