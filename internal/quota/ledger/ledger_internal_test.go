package ledger

import (
	"context"
	"errors"
	"fmt"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/quotatest"
	"quotad/internal/quota/session"
	"testing"
	"time"
)

// handLedger is an engine's ledger that stands still: the test does its transactions.
func handLedger(t *testing.T, e *quota.Engine) *Ledger {
	t.Helper()
	l := e.Ledgers[0]
	t.Cleanup(l.Session.Close)
	if err := l.Session.Ready(pgtest.Context(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

// together is an atomic batch as an operation.
func (l *Ledger) together(hits []model.Hit, out *error) *Operation {
	o := l.newOperation(hits[0].Target, model.ID{})
	o.target, o.repeatable = nil, true
	for _, h := range hits {
		o.lock(h.Target.Keys()...)
		o.identify(h.Target.Counters[0].Key.Customer, h.ID)
	}
	o.do = func(b *books) error { _, _, err := b.hits(hits); return err }
	o.failed = func(err error) { *out = err }
	return o
}

// TestLostCommits: the commit's answer is lost. What has ids is done again, and found done;
// of what has none, or only some of its hits, nobody can know, and it is not sent again.
func TestLostCommits(t *testing.T) {
	for name, c := range map[string]struct {
		ids     [2]bool
		unknown bool
	}{"all": {[2]bool{true, true}, false}, "one": {[2]bool{true, false}, true}, "none": {[2]bool{false, false}, true}} {
		t.Run(name, func(t *testing.T) {
			db, ctx, clock := newTestDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
			e := db.handEngine(t, clock)
			l, seats := handLedger(t, e), quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 100})
			var hits []model.Hit
			for i, has := range c.ids {
				h := model.Hit{Target: quotatest.Target(int64(i+1), 1, 1, seats), Cost: int64(i + 1)}
				if has {
					h.ID = model.NewID("hit", fmt.Sprint(i))
				}
				hits = append(hits, h)
			}
			var outcome error
			o := l.together(hits, &outcome)
			if err := l.Enqueue(o); err != nil {
				t.Fatal(err)
			}
			l.Next(ctx) // makes the rows
			o.Take()
			// The transaction is committed, and then the connection is gone.
			f := l.Session.Conn.Begin(ctx)
			b, err := l.read(f, []*Operation{o}, clock.At.Load())
			if err == nil {
				l.apply(b, []*Operation{o})
				b.write(f, &l.params)
				err = f.Commit()
			}
			if err != nil || o.settled != nil {
				t.Fatal(err, o.settled)
			}
			l.Again = nil
			l.lost([]*Operation{o}, errors.New("the connection broke"), true)
			for range 3 {
				if len(l.Again) > 0 {
					l.Next(ctx)
				}
			}
			<-o.Done
			if errors.Is(outcome, session.ErrOutcomeUnknown) != c.unknown || !c.unknown && outcome != nil {
				t.Error(outcome)
			}
			for i := range hits {
				s, err := e.Standings(ctx, []*model.Target{hits[i].Target})
				if err != nil || s[0].View(0).Used != hits[i].Cost || s[0].PeriodUsed != hits[i].Cost {
					t.Errorf("hit %d: %d used, want %d, %v", i, s[0].View(0).Used, hits[i].Cost, err)
				}
			}
		})
	}
}

// TestAfterALostCommit: an operation that may have been done is never said not to have been.
func TestAfterALostCommit(t *testing.T) {
	var o Operation
	o.unknown.Store(true)
	for _, err := range []error{session.ErrBusy, session.ErrUnavailable, ErrUnderWay, session.ErrInternal} {
		got := o.outcome(fmt.Errorf("%w: because", err))
		if !errors.Is(got, session.ErrOutcomeUnknown) || errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	for _, err := range []error{ErrOtherPayload, ErrUnknownHit, nil} {
		if got := o.outcome(err); !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// TestVanishedNode: a node that has locked rows and says no more loses them.
func TestVanishedNode(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1h"))
	alive := db.startEngine(t, clock)
	if d, err := alive.decideOnce(ctx, target, 1, model.NewID("hit", "first")); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	e := db.handEngine(t, clock)
	l := handLedger(t, e)
	f := l.Session.Conn.Begin(ctx)
	o := l.newOperation(target, model.NewID("hit", "lost"))
	o.do = func(b *books) error { _, err := b.hit(target, 1, model.NewID("hit", "lost")); return err }
	b, err := l.read(f, []*Operation{o}, clock.At.Load())
	if err != nil || !b.accounts[target.Counters[0].Key].there {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	if d, err := alive.decideOnce(within, target, 1, model.NewID("hit", "second")); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	l.apply(b, []*Operation{o})
	b.write(f, &l.params)
	if err := f.Commit(); err == nil || !idled(err) && !errors.Is(err, context.DeadlineExceeded) && session.RolledBack(err) {
		t.Error("its transaction went on:", err)
	}
	f.Abandon()
	s, err := alive.Standings(ctx, []*model.Target{target})
	if err != nil || s[0].PeriodUsed != 2 {
		t.Errorf("%d units, %v", s[0].PeriodUsed, err)
	}
}
