package quota

import (
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// Each hit and reservation counts once as admitted or refused, whichever way it is decided. Looks
// and replays do not count.
func TestDecisionsAreCounted(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "w", 10, "1h"))
	other := quotatest.Target(2, 1, 1, quotatest.Window(t, "w", 10, "1h"))
	var admitted, refused int64
	counted := func(what string, moreAdmitted, moreRefused int64) {
		t.Helper()
		admitted, refused = admitted+moreAdmitted, refused+moreRefused
		if s := e.Stats(); s.Admitted != admitted || s.Refused != refused {
			t.Fatalf("%s: %d admitted and %d refused, want %d and %d", what, s.Admitted, s.Refused, admitted, refused)
		}
	}
	sure := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	decide := func(cost int64) {
		t.Helper()
		_, err := e.Decide(ctx, target, cost)
		sure(err)
	}
	decide(4)
	counted("a hit", 1, 0)
	decide(7)
	decide(7)
	counted("a refusal, and one from memory", 0, 2)
	if e.Stats().FromMemory != 1 {
		t.Error("no refusal came from memory, so this test shows less than it should")
	}
	decide(0)
	counted("a look", 0, 0)
	all := func(hits ...model.Hit) {
		t.Helper()
		for _, r := range e.DecideAll(ctx, hits) {
			sure(r.Err)
		}
	}
	all(model.Hit{Target: target, Cost: 2}, model.Hit{Target: target, Cost: 7}, model.Hit{Target: target, Cost: 1, Look: true})
	counted("a batch", 1, 1)
	named := model.Hit{Target: target, Cost: 1, ID: model.NewID("hit", "x")}
	all(named)
	counted("a hit with an id", 1, 0)
	all(named)
	counted("its replay", 0, 0)
	together := func(cost int64) {
		t.Helper()
		_, _, err := e.DecideTogether(ctx, []model.Hit{{Target: target, Cost: 1}, {Target: other, Cost: cost}})
		sure(err)
	}
	together(1)
	counted("all or none, all", 2, 0)
	together(11)
	counted("all or none, none", 0, 2)
	reserve := func(cost int64, name string) {
		t.Helper()
		_, err := e.Reserve(ctx, other, cost, 3600e6, model.NewID("reservation", name))
		sure(err)
	}
	reserve(2, "a")
	reserve(20, "b")
	counted("reservations", 1, 1)
	reserve(2, "a")
	counted("a replayed one", 0, 0)
	e.count(&queue.Result{Err: session.ErrBusy})
	counted("an error", 0, 0)
}
