package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// The walk passes all counters, customers' own among them, whatever the sizes of pages.
func TestWalkPassesAllCounters(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 10, Window: "1m"})
	own, values := stepKeys+3, 2*stepValues+1
	var customers []int64
	for id := int64(1); len(customers) < own; id++ {
		if model.Shard(id) == 7 {
			customers = append(customers, id)
		}
	}
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, attribute) SELECT 7, i, 1, '' FROM unnest($1::bigint[]) i`, customers)
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, attribute) SELECT 7, $2, 1, 'ip=' || i FROM generate_series(1, $1) i`, values,
		customers[stepKeys/2])
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, attribute) VALUES (7, $1, 1, 'ip=1')`, customers[own-1])
	cleaner := db.cleaner(quotatest.NewClock(quotatest.Epoch), target)
	removed := 0
	for cleaner.at = (cursor{shard: 7}); cleaner.at.shard == 7; {
		n, err := cleaner.step(ctx)
		if err != nil {
			t.Fatal(err)
		}
		removed += n
	}
	var left int
	if err := db.Pool.QueryRow(ctx, "SELECT count(*) FROM counters").Scan(&left); err != nil || left != own || removed != values+1 {
		t.Errorf("%d removed, %d left, %v", removed, left, err)
	}
}

// lines counts what is logged.
type lines struct{ n atomic.Int64 }

func (l *lines) Write(p []byte) (int, error) { l.n.Add(1); return len(p), nil }

// In an outage nothing is removed, one line is logged, and it goes on afterwards.
func TestCleaningInAnOutage(t *testing.T) {
	db := newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 10, Window: "1m"})
	hitNow(t, db.startEngine(t, clock), quotatest.IP(target, "1"), 1)
	clock.Set(quotatest.Epoch + 3600e6)
	cleaner := db.cleaner(clock, target)
	cleaner.options.Usable = func() bool { return false }
	if n := cleaner.walkOnce(t, target); n != 0 {
		t.Error("removed while changes may be unknown")
	}
	var logged lines
	var failed atomic.Int64
	var stopwatch time.Duration
	cleaner.options.Usable = func() bool { return true }
	cleaner.options.Stopwatch = func() time.Duration { return stopwatch }
	cleaner.options.Log = slog.New(slog.NewTextHandler(&logged, nil))
	known := cleaner.options.Targets
	cleaner.options.Targets = func(ctx context.Context, keys []model.CounterKey) ([]*model.Target, error) {
		if cleaner.at = (cursor{shard: model.Shard(quotatest.Customer(target))}); failed.Add(1) < 4 {
			return nil, errors.New("out of reach")
		}
		return known(ctx, keys)
	}
	cleaner.at = cursor{shard: model.Shard(quotatest.Customer(target))}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ended := make(chan struct{})
	go func() { cleaner.Run(ctx); close(ended) }()
	testkit.Eventually(t, "it goes on", func() bool { return cleaner.Removed() > 0 })
	cancel()
	<-ended
	if n := logged.n.Load(); n > 2 {
		t.Errorf("%d lines", n)
	}
}

func (c *Cleaner) walkOnce(t testing.TB, target *model.Target) int {
	t.Helper()
	c.at = cursor{shard: model.Shard(quotatest.Customer(target))}
	n, err := c.step(testkit.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPauses(t *testing.T) {
	for _, c := range []struct {
		removed    int
		took, want time.Duration
	}{
		{stepValues, 10 * time.Millisecond, busyPause},
		{stepValues / 2, 30 * time.Millisecond, 300 * time.Millisecond},
		{stepValues, 5 * time.Second, maxPause},
		{0, time.Millisecond, restPause},
		{0, 30 * time.Millisecond, 3 * time.Second},
		{0, 5 * time.Second, maxPause},
	} {
		if got := pauseAfter(c.removed, c.took); got != c.want {
			t.Errorf("%d in %s: %s", c.removed, c.took, got)
		}
	}
}

// TestMemoryAfterACounterCameBack: what a node remembers of a counter that was removed
// gives way to what it refuses later, at a smaller version.
func TestMemoryAfterACounterCameBack(t *testing.T) {
	db := newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 3, Window: "1m"})
	refuse := func() {
		t.Helper()
		for {
			if d := hitNow(t, e, quotatest.IP(target, "1"), 1); !d.Allowed {
				break
			}
		}
		if d := hitNow(t, e, quotatest.IP(target, "1"), 1); d.Allowed || d.AsOf == 0 {
			t.Errorf("not from memory: %s", d.String())
		}
	}
	refuse()
	clock.Set(quotatest.Epoch + 180e6)
	if n := db.cleaner(clock, target).walk(t, quotatest.Customer(target)); n != 1 {
		t.Fatalf("%d removed", n)
	}
	hitNow(t, e, quotatest.IP(target, "1"), 3)
	refuse()
}

// The statement itself spares customers' own counters, whatever it is told.
func TestOwnCountersNeverGo(t *testing.T) {
	db := newTestDB(t)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 3, Window: "1m"})
	clock := quotatest.NewClock(quotatest.Epoch)
	hitNow(t, db.startEngine(t, clock), quotatest.IP(target, "1"), 1)
	own := value{Row: model.Row{At: quotatest.Epoch, Version: 1}, key: model.CounterKey{Customer: quotatest.Customer(target), Meter: 1, Attribute: ""}}
	if n, err := db.cleaner(clock, target).remove(testkit.Context(t), []value{own}); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if versionOf(t, db, target) != 1 {
		t.Error("another went in its place")
	}
}

// A counter that went and came back meanwhile has a version that it had before.
func TestCounterThatCameBackStays(t *testing.T) {
	db := newTestDB(t)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 3, Window: "1m"})
	clock := quotatest.NewClock(quotatest.Epoch)
	hitNow(t, db.startEngine(t, clock), quotatest.IP(target, "1"), 1)
	seen := value{Row: model.Row{At: quotatest.Epoch - 1, Version: 1}, key: model.CounterKey{Customer: quotatest.Customer(target), Meter: 1, Attribute: "ip=1"}}
	if n, err := db.cleaner(clock, target).remove(testkit.Context(t), []value{seen}); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
}
