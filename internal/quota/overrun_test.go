package quota

import (
	"errors"
	"fmt"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestOverruns: what was spent already is charged and booked past hard limits, on all ways that a
// hit can take; then the limits refuse until it has come back. TestLockedIsTheModel has the views.
func TestOverruns(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Bucket(t, "b", 3600, "1h", 10), quotatest.Window(t, "a", 1000, "1d"))
	spent := func(cost int64, id string) model.Hit {
		h := model.Hit{Target: target, Cost: cost, Overrun: true}
		if id != "" {
			h.ID = model.NewID("hit", id)
		}
		return h
	}
	plain := model.Hit{Target: target, Cost: 1}
	for i, r := range e.DecideAll(ctx, []model.Hit{plain, spent(12, ""), plain, spent(2, "x"), spent(2, "x"), plain}) {
		if want := i != 2 && i != 5; r.Err != nil || r.Decision.Allowed != want || r.Decision.Replayed != (i == 4) {
			t.Errorf("hit %d: %s, %v", i, r.Decision.String(), r.Err)
		}
		if v := r.Decision.View(0); v.Exceeded != (i > 0) || i > 0 && v.Remaining != 0 || !r.Decision.Allowed && v.RetryAfter != map[int]int64{2: 4e6, 5: 6e6}[i] {
			t.Errorf("hit %d: %+v", i, v)
		}
	}
	e.usedInPeriod(t, target, 15)
	// All or none still: the second of these does not fit.
	_, together, err := e.DecideTogether(ctx, []model.Hit{spent(5, ""), plain})
	if err != nil || together {
		t.Error("an atomic batch with a hit that does not fit", err)
	}
	e.usedInPeriod(t, target, 15)
	if _, together, err = e.DecideTogether(ctx, []model.Hit{spent(5, ""), spent(1, "y")}); err != nil || !together {
		t.Error("an atomic batch of overruns", err)
	}
	e.usedInPeriod(t, target, 21)
	clock.Set(quotatest.Epoch + 12e6 - 1)
	if d, err := e.Decide(ctx, target, 1); err != nil || d.Allowed || d.RetryAfter() != 1 {
		t.Errorf("before it has come back: %s, %v", d.String(), err)
	}
	clock.Set(quotatest.Epoch + 12e6)
	if d, err := e.Decide(ctx, target, 1); err != nil || !d.Allowed || d.View(0).Exceeded {
		t.Errorf("when it has come back: %s, %v", d.String(), err)
	}
	reconciled(t, db)
}

func (e *Engine) usedInPeriod(t *testing.T, target *model.Target, want int64) {
	t.Helper()
	s, err := e.Standings(testkit.Context(t), []*model.Target{target})
	if err != nil || s[0].PeriodUsed != want {
		t.Errorf("%d units are booked, want %d, %v", s[0].PeriodUsed, want, err)
	}
}

// TestOverrunsEndAt64Bits: a limit counts an overrun as far as it can, as a soft one does, and
// then refuses. All of it is booked. A refund of all of it makes the limit whole again.
func TestOverrunsEndAt64Bits(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	const hits = 20
	for i, s := range []model.Spec{
		{Algorithm: "fixed_window", Limit: 1, Window: "1h"},
		{Algorithm: "fixed_window", Limit: 1, Window: "1h", Align: "first_hit"},
		{Algorithm: "sliding_window", Limit: 1, Window: "1h"},
		{Algorithm: "sliding_log", Limit: 1, Window: "30d"},
		{Algorithm: "token_bucket", Limit: 1, Window: "30d"},
		{Algorithm: "token_bucket", Limit: 0, Window: "30d"},
		{Algorithm: "allocation", Limit: 1},
	} {
		s.Name = "l"
		target := quotatest.Target(int64(i+1), 1, 1, quotatest.Compile(t, s))
		for n := range hits {
			r := e.DecideAll(ctx, []model.Hit{{Target: target, Cost: model.MaxNumber, Overrun: true, ID: model.NewID("hit", fmt.Sprint(n))}})[0]
			if v := r.Decision.View(0); r.Err != nil || !r.Decision.Allowed || !v.Exceeded || v.Remaining != 0 || v.Used < 0 || v.ResetAt < quotatest.Epoch {
				t.Fatalf("%s: %+v, %v", s.Algorithm, v, r.Err)
			}
		}
		e.usedInPeriod(t, target, hits*model.MaxNumber)
		if d, err := e.Decide(ctx, target, 1); err != nil || d.Allowed || d.RetryAfter() < model.Never || d.RetryAfter() == 0 {
			t.Errorf("%s: %s, %v", s.Algorithm, d.String(), err)
		}
		for n := range hits {
			in := locked.Refund{Target: target, Cost: model.MaxNumber, Hit: model.NewID("hit", fmt.Sprint(n)), ID: model.NewID("refund", fmt.Sprint(n))}
			if _, err := e.Refund(ctx, in); err != nil {
				t.Fatal(err)
			}
		}
		e.usedInPeriod(t, target, 0)
		if d, err := e.Look(ctx, target, 0); err != nil || d.View(0).Used != 0 || d.View(0).Exceeded {
			t.Errorf("%s, all given back: %s, %v", s.Algorithm, d.String(), err)
		}
	}
	reconciled(t, db)
}

// TestRefundedHits: the id of a hit that was given back in full admits nothing any more.
func TestRefundedHits(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1h"))
	hit := model.NewID("hit", "one")
	for i, back := range []int64{0, 3, 1} {
		if back > 0 {
			if _, err := e.Refund(ctx, locked.Refund{Target: target, Cost: back, Hit: hit, ID: model.NewID("refund", fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
		}
		d, err := e.decideOnce(ctx, target, 4, hit)
		if refunded := i == 2; errors.Is(err, locked.ErrRefunded) != refunded || !refunded && (err != nil || !d.Allowed || d.Replayed != (i > 0)) {
			t.Errorf("after %d: %s, %v", back, d.String(), err)
		}
	}
	if _, _, err := e.DecideTogether(ctx, []model.Hit{{Target: target, Cost: 1}, {Target: target, Cost: 4, ID: hit}}); !errors.Is(err, locked.ErrRefunded) {
		t.Error("in an atomic batch:", err)
	}
	e.usedInPeriod(t, target, 0)
	reconciled(t, db)
}
