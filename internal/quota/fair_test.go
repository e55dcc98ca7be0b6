package quota

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// queueHit puts a hit of a sender into the queue of a lane that stands still.
func (e *Engine) queueHit(t *testing.T, from queue.SenderID, target *model.Target) *queue.Hit {
	t.Helper()
	l := e.lanes[0]
	h := &queue.Hit{Ticket: queue.NewTicket(&l.Session), From: from, Target: target, Cost: 1}
	if _, err := l.Enqueue(e.options.MaxQueue, h); err != nil {
		t.Fatal(err)
	}
	return h
}

// admitted reports whether a hit was decided, and is an error of the test unless it was admitted.
func admitted(t *testing.T, h *queue.Hit) bool {
	t.Helper()
	select {
	case <-h.Done:
		if h.Result.Err != nil || !h.Result.Decision.Allowed {
			t.Error(h.Result.Decision.String(), h.Result.Err)
		}
		return true
	default:
		return false
	}
}

// TestAnotherKeysHitIsInTheNextBatch: one key has 20 batches of 1,000 hits waiting. A hit of
// another key is in the lane's next batch, whether the rows are new to the lane or not. It is in
// the worker's next transaction, where a lane cannot charge it.
func TestAnotherKeysHitIsInTheNextBatch(t *testing.T) {
	for name, of := range map[string]func(customer int64) *model.Target{
		"by the lane": func(customer int64) *model.Target { return quotatest.Target(customer, 1, 1) },
		"by the worker": func(customer int64) *model.Target {
			return quotatest.WithCounter(quotatest.Target(customer, 1, 1), "ip=1", quotatest.Window(t, "a", 1_000_000, "1d"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newTestDB(t), testkit.Context(t)
			e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
			e.options.MaxQueue, e.node.MaxQueue = 1_000_000, 1_000_000
			var busy []*queue.Hit
			for range 20 {
				for i := range 1000 {
					busy = append(busy, e.queueHit(t, "busy", of(int64(1+i))))
				}
			}
			decided := func() (n int) {
				for _, h := range busy {
					if len(h.Done) > 0 {
						n++
					}
				}
				return n
			}
			for round := range 3 {
				before := decided()
				other := e.queueHit(t, "other", of(int64(2000+round)))
				e.lanes[0].Next(ctx)
				for tries := 0; e.workers[0].Queued() > 0 && len(other.Done) == 0 && tries < 2; tries++ { // the first makes the rows
					e.workers[0].Next(ctx)
				}
				if !admitted(t, other) {
					t.Fatalf("round %d: another key's hit still waits", round)
				}
				if n := decided() - before; n >= 2*queue.SharedRows {
					t.Errorf("round %d: it came with %d hits of the busy one", round, n)
				}
			}
		})
	}
}

// TestNoKeyFillsAQueue: a key's hits beyond half of the queue are turned away, of a batch only
// those. Another key's hit finds room.
func TestNoKeyFillsAQueue(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
	e.options.MaxQueue, e.node.MaxQueue = 100, 100
	target := quotatest.Target(1, 1, 1)
	hits := make([]model.Hit, 80)
	for i := range hits {
		hits[i] = model.Hit{Target: target, Cost: 1}
	}
	results := make(chan []queue.Result)
	go func() { results <- e.From("busy").DecideAll(ctx, hits) }()
	testkit.Eventually(t, "half of the queue is full", func() bool { return e.Stats().Queued == 50 })
	if _, err := e.From("busy").Decide(ctx, target, 1); !errors.Is(err, session.ErrShare) {
		t.Errorf("a hit beyond the share: %v", err)
	}
	other := make(chan error)
	go func() { _, err := e.From("other").Decide(ctx, target, 1); other <- err }()
	testkit.Eventually(t, "another key's hit waits", func() bool { return e.Stats().Queued == 51 })
	for e.Stats().Queued > 0 {
		e.lanes[0].Next(ctx)
	}
	if err := <-other; err != nil {
		t.Errorf("another key's hit: %v", err)
	}
	over := 0
	for i, r := range <-results {
		if errors.Is(r.Err, session.ErrShare) && i >= 50 {
			over++
		} else if r.Err != nil || !r.Decision.Allowed {
			t.Errorf("hit %d: %s, %v", i, r.Decision.String(), r.Err)
		}
	}
	if over != 30 || e.Stats().Over != 31 {
		t.Errorf("%d of the batch are turned away, %d are counted", over, e.Stats().Over)
	}
	if d, err := e.Look(ctx, target, 0); err != nil || !d.Allowed {
		t.Error(d.String(), err)
	}
}

// TestOperationsWaitInTheirKeysLine: whatever goes to the worker waits in the line of the key
// that sent it.
func TestOperationsWaitInTheirKeysLine(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
	limit := quotatest.Window(t, "a", 1_000_000, "1d")
	target := quotatest.Target(1, 1, 1, limit)
	held := locked.ReservationID{Customer: 1, Meter: 1}
	for name, do := range map[string]func(context.Context, Sender){
		"a hit with an id": func(ctx context.Context, s Sender) {
			s.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1, ID: model.NewID("hit", "x")}})
		},
		"an atomic batch": func(ctx context.Context, s Sender) {
			_, _, _ = s.DecideTogether(ctx, []model.Hit{{Target: target, Cost: 1}})
		},
		"a refund": func(ctx context.Context, s Sender) {
			_, _ = s.Refund(ctx, locked.Refund{Target: target, Cost: 1, ID: model.NewID("refund", "x")})
		},
		"a reservation": func(ctx context.Context, s Sender) {
			_, _ = s.Reserve(ctx, target, 1, 1000, model.NewID("reserve", "x"))
		},
		"a commit":  func(ctx context.Context, s Sender) { _, _ = s.Commit(ctx, target, held, 1) },
		"a release": func(ctx context.Context, s Sender) { _, _ = s.Release(ctx, target, held) },
		"an adjustment": func(ctx context.Context, s Sender) {
			_, _ = s.Adjust(ctx, locked.Adjustment{Target: target, Cost: 1, ID: model.NewID("adjust", "x")})
		},
		"an import": func(ctx context.Context, s Sender) {
			s.ImportAll(ctx, []locked.Import{{Target: target, ID: model.NewID("import", "x")}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, from := e.workers[0], queue.SenderID(name)
			calling, leave := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() { do(calling, e.From(from)); close(ended) }()
			testkit.Eventually(t, "it waits", func() bool { return w.Queued() == 1 })
			leave()
			<-ended
			w.Take(func(o *locked.Operation) bool {
				if o.Sender() != from {
					t.Errorf("it waits in the line of %q", o.Sender())
				}
				return true
			})
		})
	}
	// Plain hits that a lane hands over: each sender's are a run.
	two := quotatest.WithCounter(target, "ip=1", limit)
	hits := []*queue.Hit{e.queueHit(t, "a", two), e.queueHit(t, "b", two), e.queueHit(t, "a", two)}
	e.lanes[0].Next(ctx)
	runs := make(map[queue.SenderID]int)
	e.workers[0].Take(func(o *locked.Operation) bool { runs[o.Sender()] += o.Hits(); return true })
	if fmt.Sprint(runs) != "map[a:2 b:1]" || len(hits[0].Done) > 0 {
		t.Errorf("runs of %v", runs)
	}
}
