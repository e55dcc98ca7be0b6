package quota

import (
	"strings"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// notified is a target of a fresh customer with a limit that has thresholds, and one beside it that has none.
func notified(t testing.TB, customer, beside int64) *model.Target {
	t.Helper()
	limits := []*model.Limit{quotatest.Compile(t, model.Spec{Name: "l", Algorithm: "fixed_window", Window: "1h", Limit: 100, Notify: []int{80, 100}})}
	if beside > 0 {
		limits = append(limits, quotatest.Window(t, "beside", beside, "1h"))
	}
	return model.NewTarget(1, customer, 1, limits, quotatest.Target(customer, 1, 1).Periods, nil)
}

// A swap that reaches a threshold goes the locked way, and none other does.
func TestOnlyWhatReachesIsLocked(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) { o.Lanes = 1 })
	customer := quotatest.FreshCustomers(1)
	target := notified(t, customer, 0)
	for i, step := range []struct {
		cost    int64
		batches int
		raised  string
	}{
		{10, 1, ""}, // the row is made
		{69, 1, ""}, {1, 2, "80 80/100"}, {1, 1, "80 80/100"}, {18, 1, "80 80/100"}, {1, 2, "80 80/100 100 100/100"}, {1, 1, "80 80/100 100 100/100"},
	} {
		_, batches := e.sendBatch(ctx, []model.Hit{{Target: target, Cost: step.cost}})
		if got := strings.Join(db.reachedOf(t, customer), " "); got != step.raised || batches != step.batches {
			t.Errorf("step %d, cost %d: %d batches, and raised are %q", i, step.cost, batches, got)
		}
	}
}

// What memory refuses is told, too: the first refusal that a limit with thresholds takes part in is written.
func TestARefusalFromMemoryIsTold(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	customer := quotatest.FreshCustomers(1)
	target := notified(t, customer, 50)
	for i, step := range []struct {
		cost   int64
		allow  bool
		memory bool
		raised string
	}{
		{49, true, false, ""},
		{2, false, false, ""}, // by the limit beside it
		{2, false, true, ""},
		{60, false, false, "100 49/100"},
		{60, false, true, "100 49/100"},
	} {
		before := e.Stats().FromMemory
		d, err := e.Decide(ctx, target, step.cost)
		if err != nil {
			t.Fatal(err)
		}
		memory := e.Stats().FromMemory > before
		if got := strings.Join(db.reachedOf(t, customer), " "); got != step.raised || d.Allowed != step.allow || memory != step.memory {
			t.Errorf("step %d, cost %d: allowed %v, from memory %v, and raised are %q", i, step.cost, d.Allowed, memory, got)
		}
	}
}

// A refusal that raises 100 percent changes the row: another node's swap of the row before it is lost, and
// not what was raised.
func TestARaisedRowIsAnother(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	one, other := db.startEngine(t, clock, withoutMemory), db.startEngine(t, clock, withoutMemory)
	customer := quotatest.FreshCustomers(1)
	ones, others := notified(t, customer, 0), notified(t, customer, 0)
	for i, step := range []struct {
		e      *Engine
		target *model.Target
		cost   int64
	}{{other, others, 50}, {other, others, 10}, {one, ones, 60}, {other, others, 5}, {one, ones, 60}, {one, ones, 60}} {
		if _, err := step.e.Decide(ctx, step.target, step.cost); err != nil {
			t.Fatal(i, err)
		}
	}
	if got := strings.Join(db.reachedOf(t, customer), " "); got != "100 60/100" {
		t.Errorf("raised are %s", got)
	}
}
