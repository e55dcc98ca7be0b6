package quota

import (
	"context"
	"slices"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
)

// testDB is a database of the test's own, on which engines can be started.
type testDB struct{ *kitDB }

func newTestDB(t testing.TB) *testDB { return &testDB{newKitDB(t)} }

func (db *testDB) options(c *testClock) Options {
	start := time.Now()
	return Options{
		Connect: db.Connect, Pool: db.Pool, Now: c.Now, Wall: time.Now,
		Stopwatch: func() time.Duration { return time.Since(start) },
	}
}

// startEngine starts one of any number of engines on the database; it ends with the test.
func (db *testDB) startEngine(t testing.TB, c *testClock, change ...func(*Options)) *Engine {
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

// withoutMemory has every hit decided by a statement.
func withoutMemory(o *Options) { o.MemoryUsable = func() bool { return false } }

// handEngine is an engine whose one lane stands still: the test sends its batches.
func (db *testDB) handEngine(t testing.TB, c *testClock) *Engine {
	t.Helper()
	e, err := newEngine(db.options(c))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session{&e.lanes[0].session, &e.ledgers[0].session} {
		t.Cleanup(s.close)
		for s.ready(pgtest.Context(t)) != nil && pgtest.Context(t).Err() == nil { // it is being made
		}
	}
	return e
}

// sendBatch decides hits as one batch of a lane that stands still, and sends what is handed
// back, or over to the ledger, until nothing is left. It returns the results and the number of
// batches.
func (e *Engine) sendBatch(ctx context.Context, hits []Hit) ([]Result, int) {
	l := e.lanes[0]
	batch := make([]*hit, len(hits))
	for i, h := range hits {
		batch[i] = &hit{ticket: newTicket(&l.session), target: h.Target, cost: h.Cost}
	}
	results, batches := make([]Result, len(hits)), 0
	for l.again = slices.Clone(batch); ; batches++ {
		if len(l.again) > 0 {
			l.next(ctx)
		} else if l.ledger.queued()+len(l.ledger.again) > 0 {
			l.ledger.next(ctx)
		} else {
			break
		}
	}
	for i, h := range batch {
		<-h.done
		results[i] = h.result
	}
	return results, batches
}
