package locked

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
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// handWorker is a worker that stands still: the test does its transactions.
func handWorker(t *testing.T, db *quotatest.DB, clock *quotatest.Clock) *Worker {
	t.Helper()
	memory, err := refusals.New(100, func(int32) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	start, log := time.Now(), slog.New(slog.DiscardHandler)
	w := New(&queue.Node{MaxQueue: 100, Memory: memory, Metrics: queue.NewMetrics(), Options: session.Options{
		Connect: db.Connect, Now: clock.Now, Wall: time.Now, Log: log, Troubles: session.NewTroubles(log),
		Stopwatch: func() time.Duration { return time.Since(start) }, Patience: testkit.Patience,
	}})
	t.Cleanup(w.Session.Close)
	for ctx := testkit.Context(t); w.Session.Ready(ctx) != nil; { // it is being made
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	return w
}

// startWorker is a worker that does what it is given, until the test ends.
func startWorker(t *testing.T, db *quotatest.DB, clock *quotatest.Clock) *Worker {
	t.Helper()
	w := handWorker(t, db, clock)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(context.Background())
	}()
	t.Cleanup(func() { w.Stop(); <-ended })
	return w
}

// charged is what a customer's own counter was charged in all, and what it has as usage.
func charged(t *testing.T, db *quotatest.DB, target *model.Target) (total, units int64) {
	t.Helper()
	key := target.Counters[0].Key
	rows, err := db.Counters(testkit.Context(t), key.Customer)
	if err != nil {
		t.Fatal(err)
	}
	return rows[key].Total, rows[key].Units
}

// together is an atomic batch as an operation.
func (w *Worker) together(hits []model.Hit, out *error) *Operation {
	o := w.newOperation("", hits[0].Target, model.ID{})
	o.target, o.repeatable = nil, true
	for _, h := range hits {
		o.lock(h.Target.Keys()...)
		o.identify(h.Target.Counters[0].Key.Customer, h.ID)
	}
	o.do = func(tx *transaction) error { _, _, err := tx.hits(hits); return err }
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
			db, ctx, clock := quotatest.NewDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
			w, seats := handWorker(t, db, clock), quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 100})
			var hits []model.Hit
			for i, has := range c.ids {
				h := model.Hit{Target: quotatest.Target(int64(i+1), 1, 1, seats), Cost: int64(i + 1)}
				if has {
					h.ID = model.NewID("hit", fmt.Sprint(i))
				}
				hits = append(hits, h)
			}
			var outcome error
			o := w.together(hits, &outcome)
			if err := w.Enqueue(o); err != nil {
				t.Fatal(err)
			}
			w.Next(ctx) // makes the rows
			w.take()
			// The transaction is committed, and then the connection is gone.
			pipe := w.Session.Conn.Begin(ctx)
			tx, err := w.read(pipe, []*Operation{o}, clock.At.Load())
			if err == nil {
				w.apply(tx, []*Operation{o})
				tx.write(pipe, &w.params)
				err = pipe.Commit()
			}
			if err != nil || o.doErr != nil {
				t.Fatal(err, o.doErr)
			}
			w.transactionFailed([]*Operation{o}, errors.New("the connection broke"), true)
			for range 3 {
				if w.Queued() > 0 {
					w.Next(ctx)
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
	db, ctx, clock := quotatest.NewDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1h"))
	alive := startWorker(t, db, clock)
	if r := once(ctx, alive, target, "first"); r.Err != nil || !r.Decision.Allowed {
		t.Fatal(r.Decision.String(), r.Err)
	}
	w := handWorker(t, db, clock)
	pipe := w.Session.Conn.Begin(ctx)
	o := w.newOperation("", target, model.NewID("hit", "lost"))
	o.do = func(tx *transaction) error {
		_, err := tx.hit(&model.Hit{Target: target, Cost: 1, ID: model.NewID("hit", "lost")})
		return err
	}
	tx, err := w.read(pipe, []*Operation{o}, clock.At.Load())
	if err != nil || !tx.counters[target.Counters[0].Key].there {
		t.Fatal(err)
	}
	if r := once(testkit.Bounded(t), alive, target, "second"); r.Err != nil || !r.Decision.Allowed {
		t.Fatal(r.Decision.String(), r.Err)
	}
	w.apply(tx, []*Operation{o})
	tx.write(pipe, &w.params)
	if err := pipe.Commit(); err == nil || session.RolledBack(err) {
		t.Error("its transaction went on:", err)
	}
	pipe.Abandon()
	if total, units := charged(t, db, target); total != 2 || units != 2 {
		t.Errorf("%d units, %d in all", units, total)
	}
}

// once is a hit of cost 1 with an id.
func once(ctx context.Context, w *Worker, target *model.Target, id string) queue.Result {
	return w.Submit("", &model.Hit{Target: target, Cost: 1, ID: model.NewID("hit", id)}).Wait(ctx, true)
}
