package upkeep

import (
	"context"
	"testing"
	"time"

	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// cleaner judges by one target, whatever it is asked for.
func (db *testDB) cleaner(clock *quotatest.Clock, target *model.Target) *Cleaner {
	c := NewCleaner(CleanerOptions{
		Pool: db.Pool, Now: clock.Now, Stopwatch: func() time.Duration { return 0 }, Usable: func() bool { return true },
		Targets: func(_ context.Context, keys []model.CounterKey) ([]*model.Target, error) {
			all := make([]*model.Target, len(keys))
			for i := range keys {
				all[i] = target
			}
			return all, nil
		},
		Expire: func(context.Context, *model.Target) error { return nil },
	})
	c.limit = testkit.Patience
	return c
}

// walk goes over the shard of a customer and returns how many counters went.
func (c *Cleaner) walk(t testing.TB, customer int64) (removed int) {
	t.Helper()
	c.at = cursor{shard: model.Shard(customer)}
	for c.at.shard == model.Shard(customer) {
		n, err := c.step(testkit.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		removed += n
	}
	return removed
}

func hitNow(t testing.TB, e *quota.Engine, target *model.Target, cost int64) model.Decision {
	t.Helper()
	d, err := e.Decide(testkit.Context(t), target, cost)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// versionOf is the version of the counter of ip=1, -1 when it is not there.
func versionOf(t testing.TB, db *testDB, target *model.Target) int64 {
	t.Helper()
	rows, err := db.Counters(testkit.Context(t), quotatest.Customer(target))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := rows[model.CounterKey{Customer: quotatest.Customer(target), Meter: 1, Attribute: ""}]; !ok {
		t.Fatal("the customer's own counter is gone")
	}
	if r, ok := rows[model.CounterKey{Customer: quotatest.Customer(target), Meter: 1, Attribute: "ip=1"}]; ok {
		return r.Version
	}
	return -1
}

// TestFullAgainCountersGo: a value's counter goes a minute after its limits are whole
// again, not a microsecond before, and the next hit starts again.
func TestFullAgainCountersGo(t *testing.T) {
	db := newTestDB(t)
	const day = int64(24 * 3600e6)
	burst := int64(7)
	for name, c := range map[string]struct {
		specs []model.Spec
		whole int64 // after testEpoch; -1: never by itself
	}{
		"fixed_window":      {[]model.Spec{{Algorithm: "fixed_window", Limit: 10, Window: "1h"}}, 3600e6},
		"first_hit":         {[]model.Spec{{Algorithm: "fixed_window", Limit: 10, Window: "90s", Align: "first_hit"}}, 90e6 + 5e6},
		"token_bucket":      {[]model.Spec{{Algorithm: "token_bucket", Limit: 1, Window: "1m", Burst: &burst}}, 3*60e6 + 5e6},
		"sliding_window":    {[]model.Spec{{Algorithm: "sliding_window", Limit: 10, Window: "1m"}}, 60e6 + 40000001},
		"sliding_log":       {[]model.Spec{{Algorithm: "sliding_log", Limit: 10, Window: "10m"}}, 600e6 + 5e6},
		"allocation":        {[]model.Spec{{Algorithm: "allocation", Limit: 10}}, -1},
		"soft":              {[]model.Spec{{Algorithm: "fixed_window", Limit: 1, Window: "1m", Mode: "soft"}}, 60e6},
		"shadow not passed": {[]model.Spec{{Algorithm: "fixed_window", Limit: 10, Window: "1m", Mode: "shadow"}}, 60e6},
		"shadow passed":     {[]model.Spec{{Algorithm: "fixed_window", Limit: 1, Window: "1d", Mode: "shadow"}}, 5e6},
		"the slowest of two": {[]model.Spec{
			{Algorithm: "fixed_window", Limit: 10, Window: "1m"}, {Algorithm: "fixed_window", Limit: 10, Window: "1h"},
		}, 3600e6},
		"not those of the customer": {[]model.Spec{
			{Algorithm: "fixed_window", Limit: 10, Window: "1m"}, {Algorithm: "allocation", Limit: 10, Per: "-"},
		}, 60e6},
		// As long as a window in whatever timezone could count it.
		"calendar_day":   {[]model.Spec{{Algorithm: "fixed_window", Limit: 10, Window: "calendar_day"}}, 3*day + 5e6},
		"billing_period": {[]model.Spec{{Algorithm: "fixed_window", Limit: 10, Window: "billing_period"}}, 33*day + 5e6},
	} {
		t.Run(name, func(t *testing.T) {
			clock := quotatest.NewClock(quotatest.Epoch + 5e6)
			e := db.startEngine(t, clock)
			target := quotatest.PerIP(t, c.specs...)
			cleaner := db.cleaner(clock, target)
			if d := hitNow(t, e, quotatest.IP(target, "1"), 3); !d.Allowed {
				t.Fatal("refused")
			}
			at := func(at int64) int {
				clock.Set(at)
				return cleaner.walk(t, quotatest.Customer(target))
			}
			if c.whole < 0 {
				if at(quotatest.Epoch+1000*day) != 0 || versionOf(t, db, target) != 1 {
					t.Error("what does not come back by itself went")
				}
				return
			}
			gone := quotatest.Epoch + c.whole + idleFor
			if at(gone-1) != 0 || versionOf(t, db, target) != 1 {
				t.Fatal("it went too early")
			}
			if at(gone) != 1 || versionOf(t, db, target) != -1 {
				t.Fatal("it did not go")
			}
			if cleaner.Removed() != 1 {
				t.Errorf("%d removed", cleaner.Removed())
			}
			if d := hitNow(t, e, quotatest.IP(target, "1"), 3); !d.Allowed || d.Versions()[0] != 2 || d.Versions()[1] != 1 {
				t.Errorf("the next hit: %s", d.String())
			}
		})
	}
}

// What must stay: counters that a charge or its lock overtook, that are in the future, or
// were judged under a change that this node has not seen; what of customers nobody knows.
func TestCountersInUseStay(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 10, Window: "1m"})
	cleaner := db.cleaner(clock, target)
	stays := func(what string) {
		t.Helper()
		if n := cleaner.walk(t, quotatest.Customer(target)); n != 0 || versionOf(t, db, target) < 0 {
			t.Errorf("%s: %d removed", what, n)
		}
	}
	hitNow(t, e, quotatest.IP(target, "1"), 1)
	clock.Set(quotatest.Epoch + 3600e6)
	known := cleaner.options.Targets
	cleaner.options.Targets = func(ctx context.Context, keys []model.CounterKey) ([]*model.Target, error) {
		hitNow(t, e, quotatest.IP(target, "1"), 1)
		return known(ctx, keys)
	}
	stays("charged while it was judged")
	cleaner.options.Targets = func(_ context.Context, keys []model.CounterKey) ([]*model.Target, error) {
		return make([]*model.Target, len(keys)), nil
	}
	clock.Set(quotatest.Epoch + 2*3600e6)
	stays("of a customer that is archived or gone")
	cleaner.options.Targets = known

	tx, err := db.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT FROM counters WHERE shard = $1 AND customer = $2 FOR UPDATE", model.Shard(quotatest.Customer(target)),
		quotatest.Customer(target)); err != nil {
		t.Fatal(err)
	}
	stays("held by somebody")
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	db.Exec(ctx, t, "UPDATE counters SET change = 2 WHERE attribute <> ''")
	stays("judged under a newer change")
	db.Exec(ctx, t, "UPDATE counters SET change = 1, at = $1 WHERE attribute <> ''", clock.At.Load()+1)
	stays("in the future")
	db.Exec(ctx, t, "UPDATE counters SET at = 0 WHERE attribute <> ''")
	if cleaner.walk(t, quotatest.Customer(target)) != 1 {
		t.Error("it never goes")
	}
}

// A row that was made for a hit that was then not admitted goes, too.
func TestNeverChargedCountersGo(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 10, Window: "calendar_year"}, model.Spec{Algorithm: "allocation", Limit: 1})
	db.Exec(ctx, t, "INSERT INTO counters (shard, customer, meter, attribute) VALUES ($1, $2, 1, ''), ($1, $2, 1, 'ip=1')",
		model.Shard(quotatest.Customer(target)), quotatest.Customer(target))
	if n := db.cleaner(quotatest.NewClock(quotatest.Epoch), target).walk(t, quotatest.Customer(target)); n != 1 || versionOf(t, db, target) != -1 {
		t.Errorf("%d removed", n)
	}
}

// A closed token bucket keeps what was used, for when it opens again.
func TestClosedBucketStays(t *testing.T) {
	db := newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "token_bucket", Limit: 10, Window: "1h"})
	hitNow(t, e, quotatest.IP(target, "1"), 10)
	closed := quotatest.PerIP(t, model.Spec{Algorithm: "token_bucket", Limit: 0, Window: "1h"})
	cleaner := db.cleaner(clock, closed)
	clock.Set(quotatest.Epoch + 24*3600e6)
	if n := cleaner.walk(t, quotatest.Customer(target)); n != 0 {
		t.Errorf("%d removed", n)
	}
}

// Without a limit in the plan a counter stays for a day, and until what it says of limits that left
// counts no more: an allocation in use counts until it is given back.
func TestCountersWithoutLimitsGoAfterADay(t *testing.T) {
	db := newTestDB(t)
	for name, after := range map[string]*model.Target{
		"no limits":           quotatest.PerIP(t),
		"another attribute's": quotatest.PerIP(t, model.Spec{Algorithm: "allocation", Limit: 1, Per: "i"}, model.Spec{Algorithm: "allocation", Limit: 1, Per: "-"}),
	} {
		for kind, left := range map[string]struct {
			spec model.Spec
			goes int64 // µs after the charge; 0: never
		}{
			"an hour":       {model.Spec{Algorithm: "sliding_log", Limit: 10, Window: "1h"}, unlimitedFor},
			"a month":       {model.Spec{Algorithm: "sliding_log", Limit: 10, Window: "720h"}, 720*3600e6 + (2 * time.Minute).Microseconds()},
			"an allocation": {model.Spec{Algorithm: "allocation", Limit: 10}, 0},
		} {
			t.Run(name+", of "+kind, func(t *testing.T) {
				clock := quotatest.NewClock(quotatest.Epoch)
				target := quotatest.PerIP(t, left.spec)
				hitNow(t, db.startEngine(t, clock), quotatest.IP(target, "1"), 1)
				cleaner := db.cleaner(clock, after)
				removed := func(at int64) int {
					clock.Set(quotatest.Epoch + at)
					return cleaner.walk(t, quotatest.Customer(target))
				}
				if left.goes == 0 {
					if n := removed(1000 * unlimitedFor); n != 0 {
						t.Errorf("%d removed, and it is in use", n)
					}
				} else if before, after := removed(min(left.goes, 720*3600e6)-1), removed(left.goes); before != 0 || after != 1 {
					t.Errorf("%d removed before its end, and %d after that", before, after)
				}
			})
		}
	}
}

// A test clock may be set back to where a counter still counts: none of its goes.
func TestCleaningLeavesTestClocksAlone(t *testing.T) {
	db := newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 10, Window: "1h"})
	target.Clock = &model.TestClock{Key: "c", Now: quotatest.Epoch}
	e := db.startEngine(t, clock)
	hitNow(t, e, quotatest.IP(target, "1"), 10)
	later := *target.Clock
	later.Now += 1000 * 24 * 3600e6
	target.Clock = &later
	clock.Set(quotatest.Epoch + 1000*24*3600e6)
	if n := db.cleaner(clock, target).walk(t, quotatest.Customer(target)); n != 0 {
		t.Error("it went")
	}
}
