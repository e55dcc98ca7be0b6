package quota

import (
	"context"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// testDB is a database of the test's own, on which engines can be started.
type testDB struct{ *quotatest.DB }

func newTestDB(t testing.TB) *testDB { return &testDB{quotatest.NewDB(t)} }

func (db *testDB) options(c *quotatest.Clock) Options {
	start := time.Now()
	return Options{
		Connect: db.Connect, Pool: db.Pool, Now: c.Now, Wall: time.Now,
		Stopwatch: func() time.Duration { return time.Since(start) }, Patience: testkit.Patience,
	}
}

// startEngine starts one of any number of engines on the database; it ends with the test.
func (db *testDB) startEngine(t testing.TB, c *quotatest.Clock, change ...func(*Options)) *Engine {
	t.Helper()
	o := db.options(c)
	for _, f := range change {
		f(&o)
	}
	e, err := NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// impatient has an engine give the database up as soon as the product does.
func impatient(o *Options) { o.Patience = 0 }

// withoutMemory has every hit decided by a statement.
func withoutMemory(o *Options) { o.MemoryUsable = func() bool { return false } }

// handEngine is an engine whose one lane and one worker stand still, with sessions: the test sends
// their batches.
func (db *testDB) handEngine(t testing.TB, c *quotatest.Clock, change ...func(*Options)) *Engine {
	t.Helper()
	o := db.options(c)
	for _, f := range change {
		f(&o)
	}
	e, err := newEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.lanes[0].Session.Close)
	t.Cleanup(e.workers[0].Session.Close)
	e.awaitSession(testkit.Context(t), t)
	return e
}

// sendBatch decides hits as one batch of a lane that stands still, and sends what is handed
// back, or over to the worker, until nothing is left. It returns the results and the number of
// batches.
func (e *Engine) sendBatch(ctx context.Context, hits []model.Hit) ([]queue.Result, int) {
	l := e.lanes[0]
	batch := make([]*queue.Hit, len(hits))
	for i, h := range hits {
		batch[i] = &queue.Hit{Ticket: queue.NewTicket(&l.Session), Target: h.Target, Cost: h.Cost}
	}
	results, batches := make([]queue.Result, len(hits)), 0
	for l.PutBack(batch...); ; batches++ {
		if l.Queued() > 0 {
			l.Next(ctx)
		} else if l.Worker.Queued() > 0 {
			l.Worker.Next(ctx)
		} else {
			break
		}
	}
	for i, h := range batch {
		<-h.Done
		results[i] = h.Result
	}
	return results, batches
}
