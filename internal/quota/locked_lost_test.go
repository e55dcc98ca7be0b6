package quota

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"quotad/internal/quota/lane"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// breaker breaks a session's connection at a statement, once for each time that it is armed.
type breaker struct {
	at    atomic.Pointer[breakAt]
	broke atomic.Int64
}

// breakAt is where: at what is sent with this text in it.
type breakAt struct {
	text string
	when breakWhen
}

type breakWhen int

const (
	beforeIt breakWhen = iota // before a byte of it is sent
	withinIt                  // when half of it is sent
	behindIt                  // once the server has answered
)

func (b *breaker) wrap(conn net.Conn) net.Conn { return &breakable{Conn: conn, breaker: b} }

type breakable struct {
	net.Conn
	*breaker
	lose atomic.Bool // the next answer
}

func (c *breakable) Write(p []byte) (int, error) {
	if at := c.at.Load(); at != nil && bytes.Contains(p, []byte(at.text)) && c.at.CompareAndSwap(at, nil) {
		c.broke.Add(1)
		switch at.when {
		case beforeIt:
			_ = c.Close()
			return 0, net.ErrClosed
		case withinIt:
			n, _ := c.Conn.Write(p[:len(p)/2])
			_ = c.Close()
			return n, net.ErrClosed
		case behindIt:
			c.lose.Store(true)
		}
	}
	return c.Conn.Write(p)
}

func (c *breakable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.lose.CompareAndSwap(true, false) {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// mixedEngine is an engine that stands still, and whose worker's connections b breaks. settled
// is a target with a value that was charged once, so that its rows are there.
func (db *testDB) mixedEngine(ctx context.Context, t *testing.T, b *breaker) (e *Engine, settled func(customer int64) *model.Target) {
	t.Helper()
	e = db.handEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) { o.Connect = db.ConnectBy(b.wrap) })
	return e, func(customer int64) *model.Target {
		limit := quotatest.Window(t, "a", 1_000_000, "1d")
		target := quotatest.WithCounter(quotatest.Target(customer, 1, 1, limit), "ip=1", limit)
		if r, _ := e.sendBatch(ctx, []model.Hit{{Target: target, Cost: 1}}); r[0].Err != nil || !r[0].Decision.Allowed {
			t.Fatal(r[0].Err)
		}
		return target
	}
}

// awaitSession waits until the lane and the worker, which stand still, have sessions.
func (e *Engine) awaitSession(ctx context.Context, t testing.TB) {
	t.Helper()
	for _, s := range []*session.Session{&e.lanes[0].Session, &e.workers[0].Session} {
		testkit.Eventually(t, "there is a session", func() bool { return s.Ready(ctx) == nil })
	}
}

// drain does transactions of a worker that stands still until nothing waits.
func (e *Engine) drain(ctx context.Context, t *testing.T) {
	t.Helper()
	for w := e.workers[0]; w.Queued() > 0; w.Next(ctx) {
		e.awaitSession(ctx, t)
	}
}

// handOver gives plain hits to the worker as a lane does.
func (e *Engine) handOver(t *model.Target, costs ...int64) (hits []*queue.Hit) {
	for _, cost := range costs {
		h := &queue.Hit{Ticket: queue.NewTicket(&e.lanes[0].Session), Target: t, Cost: cost}
		h.Take()
		hits = append(hits, h)
	}
	e.lanes[0].HandOver(&lane.Group{Group: queue.Group{Target: t, Hits: hits}})
	return hits
}

// TestLostWithPlainHits: plain hits and operations with ids are in one transaction, whose
// connection breaks. What has an id is done once, and said to be. Plain hits are done once, or
// not sent again and told that nobody knows.
func TestLostWithPlainHits(t *testing.T) {
	for name, c := range map[string]struct {
		at      breakAt
		unknown bool  // what the plain hits are told
		charged int64 // of the plain hits, in each customer's units
	}{
		"before it was sent":                  {breakAt{"BEGIN", beforeIt}, false, 3},
		"after its locks":                     {breakAt{"BEGIN", behindIt}, false, 3},
		"before its commit was sent":          {breakAt{"COMMIT", beforeIt}, false, 3},
		"while its commit was being sent":     {breakAt{"COMMIT", withinIt}, true, 0},
		"after its commit, before the answer": {breakAt{"COMMIT", behindIt}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx, b := newTestDB(t), testkit.Context(t), new(breaker)
			e, settled := db.mixedEngine(ctx, t, b)
			one, two := settled(1), settled(2)
			plain := e.handOver(one, 1, 2)
			ids := []locked.Once{
				e.worker(one).Submit("", &model.Hit{Target: one, Cost: 10, ID: model.NewID("hit", "one")}),
				e.worker(two).Submit("", &model.Hit{Target: two, Cost: 100, ID: model.NewID("hit", "two")}),
			}
			plain = append(plain, e.handOver(two, 1, 2)...)
			b.at.Store(&c.at)
			before := e.Stats()
			e.workers[0].Next(ctx)
			if got := e.Stats(); got.Batches-before.Batches != 1 || got.Batched-before.Batched != 6 || b.broke.Load() != 1 {
				t.Fatalf("no transaction of all four was broken: %+v, %d", got, b.broke.Load())
			}
			e.drain(ctx, t)
			for i, h := range plain {
				<-h.Done
				if err := h.Result.Err; errors.Is(err, session.ErrOutcomeUnknown) != c.unknown || !c.unknown && (err != nil || !h.Result.Decision.Allowed) {
					t.Errorf("plain hit %d: %v", i, err)
				}
			}
			for i := range ids {
				r := ids[i].Wait(ctx, true)
				if r.Err != nil || !r.Decision.Allowed || r.Decision.Replayed != (c.at == breakAt{"COMMIT", behindIt}) {
					t.Errorf("hit %d with an id: %s, %v", i, r.Decision.String(), r.Err)
				}
			}
			e.used(ctx, t, one, 1+c.charged+10)
			e.used(ctx, t, two, 1+c.charged+100)
			reconciled(t, db)
		})
	}
}

// used checks what a target's limits, all windows of a day, and its usage have.
func (e *Engine) used(ctx context.Context, t *testing.T, target *model.Target, units int64) {
	t.Helper()
	all, err := e.Standings(ctx, []*model.Target{target})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all[0].NumViews() {
		if got := all[0].View(i).Used; got != units {
			t.Errorf("customer %d, limit %d: %d used, want %d", quotatest.Customer(target), i, got, units)
		}
	}
	if got := all[0].PeriodUsed; got != units {
		t.Errorf("customer %d: %d units of usage, want %d", quotatest.Customer(target), got, units)
	}
}
