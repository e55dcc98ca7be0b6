package quota

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// denied reads what the usage table says was denied to a customer, by hour.
func (db *testDB) denied(ctx context.Context, t *testing.T, customer int64) map[int64]int64 {
	t.Helper()
	all := make(map[int64]int64)
	rows, err := db.Pool.Query(ctx, "SELECT hour, denied FROM usage WHERE shard = $1 AND customer = $2", model.Shard(customer), customer)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var hour, units int64
		if err := rows.Scan(&hour, &units); err != nil {
			t.Fatal(err)
		}
		all[hour] = units
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return all
}

// refusal is a refused hit on a target without limits.
func refusal(t *model.Target, cost int64) *model.Decision {
	return &model.Decision{Target: t, Cost: cost}
}

func TestDenialsAdd(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	d, a, b := newDenials(db.Pool, quotatest.NewClock(quotatest.Epoch).Now, testkit.Patience), quotatest.Target(1, 1, 1), quotatest.Target(2, 1, 1)
	if err := d.write(ctx); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{3, 4} {
		d.add(refusal(a, n), 10)
		d.add(refusal(a, 1), 20)
		d.add(refusal(b, math.MaxInt64), 10) // saturates here,
		if err := d.write(ctx); err != nil {
			t.Fatal(err)
		}
		d.add(refusal(b, math.MaxInt64-1), 10)
		d.add(refusal(b, 5), 10) // and in the table
	}
	if err := d.write(ctx); err != nil {
		t.Fatal(err)
	}
	if got := db.denied(ctx, t, 1); len(got) != 2 || got[10] != 7 || got[20] != 2 {
		t.Errorf("customer 1: %v", got)
	}
	if got := db.denied(ctx, t, 2); len(got) != 1 || got[10] != math.MaxInt64 {
		t.Errorf("customer 2: %v", got)
	}
	if len(d.minutes) != 0 || d.lost.Load() != 0 {
		t.Errorf("%d left, %d lost", len(d.minutes), d.lost.Load())
	}
}

// TestDenialsAreBounded: beyond a number of rows what is denied is counted as lost; so is
// what cannot be written.
func TestDenialsAreBounded(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	d := newDenials(db.Pool, quotatest.NewClock(quotatest.Epoch).Now, testkit.Patience)
	for i := range int64(maxDenials) {
		d.add(refusal(quotatest.Target(1, 1, 1), 1), i)
	}
	d.add(refusal(quotatest.Target(1, 1, 1), 5), -1)
	d.add(refusal(quotatest.Target(1, 1, 1), 5), 0) // a row that is there already
	if len(d.minutes) != maxDenials || d.lost.Load() != 5 || d.minutes[minuteKey{HourKey: model.HourKey{Customer: 1, Meter: 1, Hour: 0}}].units != 6 {
		t.Errorf("%d rows, %d lost", len(d.minutes), d.lost.Load())
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.write(ctx); err == nil || d.lost.Load() != 5+maxDenials+5 || len(d.minutes) != 0 {
		t.Errorf("%v: %d lost, %d left", err, d.lost.Load(), len(d.minutes))
	}
}

// TestDenialsInOrder: rows are written in the order in which lanes book usage.
func TestDenialsInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := make(map[model.HourKey]int64)
		for range rapid.IntRange(0, 50).Draw(rt, "rows") {
			k := drawKey(rt)
			m[model.HourKey{Customer: k.Customer, Meter: k.Meter, Hour: rapid.Int64Range(0, 3).Draw(rt, "hour")}] = 1
		}
		keys := sortedDenials(m)
		if len(keys) != len(m) || !slices.IsSortedFunc(keys, func(a, b model.HourKey) int {
			if c := model.CompareKeys(model.CounterKey{Customer: a.Customer, Meter: a.Meter}, model.CounterKey{Customer: b.Customer, Meter: b.Meter}); c != 0 {
				return c
			}
			return int(a.Hour - b.Hour)
		}) {
			rt.Fatalf("%v", keys)
		}
	})
}

// TestDenialsOfAnEngine: all that was refused is there once the engine is closed, refusals
// from memory and looks' included or not, and what was admitted is not touched.
func TestDenialsOfAnEngine(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e, err := NewEngine(db.options(clock))
	if err != nil {
		t.Fatal(err)
	}
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1d"))
	for i, cost := range []int64{10, 1, 2, 3} { // the last two from memory
		if d, err := e.Decide(ctx, target, cost); err != nil || d.Allowed != (i == 0) {
			t.Fatalf("%s, %v", d.String(), err)
		}
	}
	if d, err := e.Look(ctx, target, 5); err != nil || d.Allowed { // nobody was refused
		t.Fatalf("%s, %v", d.String(), err)
	}
	clock.Set(quotatest.Epoch + 3600e6)
	if d, err := e.Decide(ctx, target, 7); err != nil || d.Allowed {
		t.Fatalf("%s, %v", d.String(), err)
	}
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if got := db.denied(ctx, t, 1); len(got) != 2 || got[quotatest.Epoch] != 6 || got[quotatest.Epoch+3600e6] != 7 {
		t.Errorf("denied %v", got)
	}
	hours, err := e.Usage(ctx, 1, 1, 0, math.MaxInt64, 100)
	want := []UsageHour{{quotatest.Epoch, 10, 6}, {quotatest.Epoch + 3600e6, 0, 7}}
	if err != nil || !slices.Equal(hours, want) {
		t.Errorf("usage %v, %v; want %v", hours, err, want)
	}
	if s := e.Stats(); s.FromMemory != 3 || s.Denials != 0 {
		t.Errorf("%+v", s)
	}
}

// TestDenialsConcurrently: what is added while others write is written once (and, with
// -race, an empty write does not look at the map that is being filled).
func TestDenialsConcurrently(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	d, target := newDenials(db.Pool, quotatest.NewClock(quotatest.Epoch).Now, testkit.Patience), quotatest.Target(1, 1, 1)
	var adders sync.WaitGroup
	for range 4 {
		adders.Go(func() {
			for i := range 200 {
				d.add(refusal(target, 1), int64(i%3))
				runtime.Gosched()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		adders.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if err := d.write(ctx); err != nil {
			t.Fatal(err)
		}
	}
	sum := int64(0)
	for _, units := range db.denied(ctx, t, 1) {
		sum += units
	}
	if sum != 800 {
		t.Errorf("%d denied, want 800", sum)
	}
}

func drawKey(rt *rapid.T) model.CounterKey {
	return model.CounterKey{
		Customer: rapid.Int64Range(1, 4).Draw(rt, "customer"), Meter: rapid.Int32Range(1, 2).Draw(rt, "meter"),
		Attribute: rapid.SampledFrom([]string{"", "", "ip=1", "ip=2", "ip=10", "IP=1", "ip=ä", "ip=_", "ip=a b"}).Draw(rt, "attribute"),
	}
}
