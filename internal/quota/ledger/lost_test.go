package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/refusals"
	"quotad/internal/quota/session"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// handLedger is a ledger that stands still: the test does its transactions.
func handLedger(t *testing.T, db *quotatest.DB, clock *quotatest.Clock) *Ledger {
	t.Helper()
	memory, err := refusals.New(100, func(int32) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	start, log := time.Now(), slog.New(slog.DiscardHandler)
	l := New(&queue.Node{MaxQueue: 100, Memory: memory, Options: session.Options{
		Connect: db.Connect, Now: clock.Now, Wall: time.Now, Log: log, Troubles: session.NewTroubles(log),
		Stopwatch: func() time.Duration { return time.Since(start) },
	}})
	t.Cleanup(l.Session.Close)
	for ctx := pgtest.Context(t); l.Session.Ready(ctx) != nil; { // it is being made
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	return l
}

// startLedger is a ledger that does what it is given, until the test ends.
func startLedger(t *testing.T, db *quotatest.DB, clock *quotatest.Clock) *Ledger {
	t.Helper()
	l := handLedger(t, db, clock)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(context.Background())
	}()
	t.Cleanup(func() { l.Stop(); <-ended })
	return l
}

// charged is what a customer's own counter was charged in all, and what it has as usage.
func charged(t *testing.T, db *quotatest.DB, target *model.Target) (total, units int64) {
	t.Helper()
	key := target.Counters[0].Key
	rows, err := db.Counters(pgtest.Context(t), key.Customer)
	if err != nil {
		t.Fatal(err)
	}
	return rows[key].Total, rows[key].Units
}

// together is an atomic batch as an operation.
func (l *Ledger) together(hits []model.Hit, out *error) *Operation {
	o := l.newOperation("", hits[0].Target, model.ID{})
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
			db, ctx, clock := quotatest.NewDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
			l, seats := handLedger(t, db, clock), quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 100})
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
			l.take()
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
			l.lost([]*Operation{o}, errors.New("the connection broke"), true)
			for range 3 {
				if l.Queued() > 0 {
					l.Next(ctx)
				}
			}
			<-o.Done
			if errors.Is(outcome, session.ErrOutcomeUnknown) != c.unknown || !c.unknown && outcome != nil {
				t.Error(outcome)
			}
			for i := range hits {
				rows, err := db.Counters(ctx, int64(i+1))
				if err != nil {
					t.Fatal(err)
				}
				row, want := rows[hits[i].Target.Counters[0].Key], hits[i].Cost
				used := model.Judge(hits[i].Target, []model.Row{row.Row}, row.At, 0)
				if used.View(0).Used != want || row.Units != want || row.Total != want {
					t.Errorf("hit %d: %d used, %d units, %d in all; want %d", i, used.View(0).Used, row.Units, row.Total, want)
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
	db, ctx, clock := quotatest.NewDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1h"))
	alive := startLedger(t, db, clock)
	if r := once(ctx, alive, target, "first"); r.Err != nil || !r.Decision.Allowed {
		t.Fatal(r.Decision.String(), r.Err)
	}
	l := handLedger(t, db, clock)
	f := l.Session.Conn.Begin(ctx)
	o := l.newOperation("", target, model.NewID("hit", "lost"))
	o.do = func(b *books) error {
		_, err := b.hit(&model.Hit{Target: target, Cost: 1, ID: model.NewID("hit", "lost")})
		return err
	}
	b, err := l.read(f, []*Operation{o}, clock.At.Load())
	if err != nil || !b.accounts[target.Counters[0].Key].there {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	if r := once(within, alive, target, "second"); r.Err != nil || !r.Decision.Allowed {
		t.Fatal(r.Decision.String(), r.Err)
	}
	l.apply(b, []*Operation{o})
	b.write(f, &l.params)
	if err := f.Commit(); err == nil || session.RolledBack(err) {
		t.Error("its transaction went on:", err)
	}
	f.Abandon()
	if total, units := charged(t, db, target); total != 2 || units != 2 {
		t.Errorf("%d units, %d in all", units, total)
	}
}

// once is a hit of cost 1 with an id.
func once(ctx context.Context, l *Ledger, target *model.Target, id string) queue.Result {
	return l.Submit("", &model.Hit{Target: target, Cost: 1, ID: model.NewID("hit", id)}).Wait(ctx)
}
