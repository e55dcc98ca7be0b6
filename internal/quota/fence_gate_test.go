package quota

import (
	"context"
	"errors"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// ofAValue is how a hit is charged to the counter of an attribute's value as well.
const ofAValue = "value"

// TestChargesBesideAFence: a charging statement was judged before the boundary, and reaches the
// server when the counter has been fenced. Its units are booked once, after the boundary; or not
// at all, when nobody waits for the answer any more. The caller is told which.
func TestChargesBesideAFence(t *testing.T) {
	ways := quotatest.LateCharges()
	ways["a hit on a value"] = quotatest.Late{How: ofAValue, Text: "quotad_locked_lock", Warm: true}
	ways["a first hit on a value"] = quotatest.Late{How: ofAValue, Text: "quotad_locked_lock"}
	for name, late := range ways {
		t.Run(name, func(t *testing.T) { chargeBesideAFence(t, late) })
	}
}

func chargeBesideAFence(t *testing.T, late quotatest.Late) {
	const before, cost = 3, 5
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	gate := quotatest.NewGate()
	here, there := db.startEngine(t, clock, func(o *Options) { o.Connect = db.ConnectBy(gate.Wrap) }), db.startEngine(t, clock)
	limits := []*model.Limit{quotatest.Window(t, "a", 1000, "1d"), perLimit(t, "b", "ip", 1000)}
	if late.Text != "quotad_locked_lock" {
		limits = limits[:1] // hits on several counters are never swapped
	}
	daily, bound := dailyTarget(1)
	target := model.NewTarget(1, 1, 1, limits, daily.Periods, nil)
	clock.Set(bound - 1)
	openSessions(t, here, model.NewTarget(1, 2, 1, limits, daily.Periods, nil))
	var booked int64
	if late.Warm {
		booked = before
		if d, err := here.Decide(ctx, target.For(nil), before); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	held := gate.HoldBack(t, late.Text, lateCharge(t, here, target, late.How, cost))
	if late.Gone {
		held.GiveUp()
	}
	clock.Set(bound + 10e6)
	fenced := there.Fence(ctx, fencesOf(bound, target))[0]
	for errors.Is(fenced, session.ErrBusy) {
		fenced = there.Fence(ctx, fencesOf(bound, target))[0]
	}
	if fenced != nil {
		t.Fatal(fenced)
	}
	bookedBefore := func(when string) {
		t.Helper()
		if finished, running := db.usageBefore(t, 1, bound); finished != booked || running != 0 {
			t.Errorf("%s, %d and %d units are booked before the boundary, want %d and none", when, finished, running, booked)
		}
	}
	bookedBefore("when it is fenced")
	gate.Open()
	behind := int64(1)
	if !late.Gone {
		behind += cost
		held.AdmittedFrom(bound)
	}
	// It comes after the other.
	if d, err := here.Decide(ctx, target.For(nil), 1); err != nil || !d.Allowed || d.At < bound {
		t.Errorf("the next hit: %s, %v", d.String(), err)
	}
	bookedBefore("in the end")
	if used, err := there.Usage(ctx, 1, 1, bound, bound+86400e6, 100); err != nil || sumOf(used) != behind {
		t.Errorf("%+v is booked behind the boundary, want %d, %v", used, behind, err)
	}
	reconciled(t, db)
}

// openSessions has a node open the sessions of its lane and its worker.
func openSessions(t *testing.T, node *Engine, target *model.Target) {
	t.Helper()
	ctx := testkit.Context(t)
	if err := node.Connected(ctx); err != nil {
		t.Fatal(err)
	}
	if d := node.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1}})[0]; d.Err != nil {
		t.Fatal(d.Err)
	}
	if _, err := node.decideOnce(ctx, target, 1, model.NewID("hit", "any")); err != nil {
		t.Fatal(err)
	}
}

// lateCharge is how a node charges a target. What a commit is of is reserved now.
func lateCharge(t *testing.T, node *Engine, target *model.Target, how string, cost int64) func(context.Context) (model.Decision, error) {
	t.Helper()
	switch how {
	case quotatest.Once:
		return func(ctx context.Context) (model.Decision, error) {
			return node.decideOnce(ctx, target, cost, model.NewID("hit", "held"))
		}
	case quotatest.Commit:
		open, err := node.Reserve(testkit.Context(t), target, cost, 3600e6, model.NewID("reservation", "r"))
		if err != nil || !open.Allowed {
			t.Fatal(open.String(), err)
		}
		return func(ctx context.Context) (model.Decision, error) {
			s, err := node.Commit(ctx, target, open.ID, cost)
			return s.Decision, err
		}
	case ofAValue:
		target = quotatest.IP(target, "1")
	}
	return func(ctx context.Context) (model.Decision, error) { return node.Decide(ctx, target, cost) }
}
