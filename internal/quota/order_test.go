package quota

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// lane sends hits as one batch of a lane that stands still, and nothing of what it hands over.
func (e *Engine) laneBatch(ctx context.Context, target *model.Target, costs ...int64) (hits []*queue.Hit) {
	l := e.lanes[0]
	for _, cost := range costs {
		hits = append(hits, &queue.Hit{Ticket: queue.NewTicket(&l.Session), Target: target, Cost: cost})
	}
	for l.PutBack(hits...); l.Queued() > 0; {
		l.Next(ctx)
	}
	return hits
}

// TestHitsFollowThoseWithTheWorker: a customer's later hits come after those that wait in the
// worker, whatever these are, and are swapped again once none is there.
func TestHitsFollowThoseWithTheWorker(t *testing.T) {
	for name, first := range map[string]func(*Engine, *model.Target) *locked.Operation{
		"a plain hit": func(e *Engine, target *model.Target) *locked.Operation {
			e.handOver(target, 100)
			return nil
		},
		"a hit with an id": func(e *Engine, target *model.Target) *locked.Operation {
			return e.worker(target).Submit("", &model.Hit{Target: target, Cost: 100, ID: model.NewID("hit", "x")}).Operation
		},
		"a hit with an id whose caller left": func(e *Engine, target *model.Target) *locked.Operation {
			o := e.worker(target).Submit("", &model.Hit{Target: target, Cost: 100, ID: model.NewID("hit", "x")}).Operation
			gone, leave := context.WithCancel(context.Background())
			leave()
			if err := o.Wait(gone, 0); err == nil {
				panic("it was decided")
			}
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newTestDB(t), testkit.Context(t)
			e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
			limit := quotatest.Window(t, "a", 110, "1d")
			one, two := quotatest.Target(1, 1, 1, limit), quotatest.Target(2, 1, 1, limit)
			e.laneBatch(ctx, one, 1)
			e.laneBatch(ctx, two, 1)
			used := int64(1 + 100)
			if first(e, one); strings.HasSuffix(name, "left") {
				used = 1
			}
			before := e.Stats()
			late := append(e.laneBatch(ctx, one, 2), e.laneBatch(ctx, one, 3)...)
			other := e.laneBatch(ctx, two, 5)
			if n := e.workers[0].Queued(); n != 3 {
				t.Fatalf("%d wait in the worker, want 3", n)
			}
			<-other[0].Done // it is another customer's
			e.drain(ctx, t)
			for i, h := range late {
				<-h.Done
				if used += int64(i + 2); h.Result.Err != nil || h.Result.Decision.View(0).Used != used {
					t.Errorf("hit %d: %s, %v; want %d used", i, h.Result.Decision.String(), h.Result.Err, used)
				}
			}
			for _, cost := range []int64{1, 1} {
				h := e.laneBatch(ctx, one, cost)[0]
				if n := e.workers[0].Queued(); n != 0 {
					t.Fatalf("%d are handed over when none is with the worker", n)
				}
				if <-h.Done; h.Result.Err != nil || !h.Result.Decision.Allowed {
					t.Error(h.Result.Decision.String(), h.Result.Err)
				}
			}
			if after := e.Stats(); after.Swapped-before.Swapped != 1+2 || after.SwapsLost != before.SwapsLost {
				t.Errorf("before %+v, after %+v", before, after)
			}
			e.used(ctx, t, one, used+2)
			e.used(ctx, t, two, 6)
		})
	}
}

// contentionTime is how long the worker keeps a counter.
const contentionTime = 100 * time.Millisecond

// TestSwapsResume: a counter whose swap was lost stays with the worker until no other node has
// written it for contention, and is swapped again then.
func TestSwapsResume(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	var watch atomic.Int64
	e := db.handEngine(t, clock, func(o *Options) { o.Stopwatch = func() time.Duration { return time.Duration(watch.Load()) } })
	there := db.startEngine(t, clock)
	limit := quotatest.Window(t, "a", 100, "1d")
	here, theirs := quotatest.Target(1, 1, 1, limit), quotatest.Target(1, 1, 1, limit)
	used := int64(0)
	for i, step := range []struct {
		at            time.Duration
		other         bool // the other node writes it before
		swapped, lost int64
	}{
		{at: 0}, // its row is made
		{at: 0, swapped: 1},
		{at: time.Millisecond, other: true, lost: 1},
		{at: 2 * time.Millisecond},                  // the worker keeps it
		{at: time.Millisecond + contentionTime - 1}, // to the end
		{at: time.Millisecond + contentionTime, swapped: 1},
		{at: time.Second / 2, other: true, lost: 1},
		{at: time.Second/2 + contentionTime - 1},
		{at: time.Second/2 + contentionTime - 1, other: true}, // written by the other once more
		{at: time.Second/2 + contentionTime},
		{at: time.Second/2 + 2*contentionTime - 2},
		{at: time.Second/2 + 2*contentionTime - 1, swapped: 1},
		{at: time.Second/2 + 2*contentionTime, swapped: 1},
	} {
		watch.Store(int64(step.at))
		if step.other {
			if d, err := there.Decide(ctx, theirs, 1); err != nil || !d.Allowed {
				t.Fatal(d.String(), err)
			}
			used++
		}
		before := e.Stats()
		results, _ := e.sendBatch(ctx, []model.Hit{{Target: here, Cost: 1}})
		used++
		if r := results[0]; r.Err != nil || r.Decision.View(0).Used != used {
			t.Errorf("step %d: %s, %v; want %d used", i, r.Decision.String(), r.Err, used)
		}
		after := e.Stats()
		if after.Swapped-before.Swapped != step.swapped || after.SwapsLost-before.SwapsLost != step.lost {
			t.Errorf("step %d: before %+v, after %+v", i, before, after)
		}
	}
	e.used(ctx, t, here, used)
	if used >= 100 {
		t.Error("the limit was reached")
	}
}
