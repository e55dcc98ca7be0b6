package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// run is clients that work on a cluster until so many operations are done.
type run struct {
	seed       uint64
	clients    int
	operations int
	ids        bool    // operations have ids; without, there are hits and batches only
	duplicates float64 // how likely an operation is sent several times at once

	cluster  *cluster
	ledger   *accounting
	tally    tally
	taken    atomic.Int64
	finished atomic.Int64
	looks    atomic.Int64

	members []*client // of the work that is done

	mu        sync.Mutex
	unsettled []*op
}

// take says whether there is an operation left to be done, and takes it.
func (r *run) take() bool { return r.taken.Add(1) <= int64(r.operations) }

// postpone keeps an operation that was refused although it may have been done before.
func (r *run) postpone(o *op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsettled = append(r.unsettled, o)
	r.tally.unsettled.Add(1)
}

// strike is something that is killed after so many operations.
type strike struct {
	at int
	do func()
}

// work has the clients do all operations while strikes fall. It returns when the last is
// answered.
func (r *run) work(t testing.TB, strikes []strike) {
	t.Helper()
	r.ledger = newAccounting()
	for n := range r.clients {
		r.members = append(r.members, newClient(r, n))
	}
	ctx, stop := context.WithCancel(testkit.Context(t))
	defer stop()
	errs := make([]error, r.clients)
	var working, looking sync.WaitGroup
	for n := range r.clients {
		working.Go(func() {
			if errs[n] = r.members[n].work(ctx); errs[n] != nil {
				stop() // the others need not go on
			}
		})
	}
	looking.Go(func() { r.look(ctx, t) })
	slices.SortFunc(strikes, func(a, b strike) int { return a.at - b.at })
	for _, s := range strikes {
		if !r.reach(ctx, int64(s.at)) {
			break
		}
		s.do()
	}
	working.Wait()
	stop()
	looking.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// reach waits until so many operations are finished; false when the run ended before.
func (r *run) reach(ctx context.Context, operations int64) bool {
	for r.finished.Load() < operations {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
	return true
}

// settle asks again, when nothing is under way any more, for what was refused after a
// lost answer. Now the answer is definitive.
func (r *run) settle(t testing.TB) {
	t.Helper()
	c := &caller{run: r, random: rand.New(rand.NewPCG(r.seed, 0x5e771e))}
	for _, o := range r.unsettled {
		a, v, _, err := r.deliver(o, 0, c.random)
		if err != nil {
			t.Fatalf("%s %s %s: %v", o.method, o.path, o.body, err)
		}
		o.book(c, a, v)
	}
	r.unsettled = nil
}

// report says what happened, and fails a run in which too little did.
func (r *run) report(t testing.TB) {
	t.Helper()
	n := &r.tally
	overHTTP, toPostgres := r.cluster.faults()
	t.Logf("seed %d: %d operations, sent %d times: %d answers lost, %d times to be sent again, %d replayed, %d refused, %d settled in the end, %d sent several times at once; %d looks",
		r.seed, r.operations, n.sent.Load(), n.lost.Load(), n.undone.Load(), n.replayed.Load(), n.refused.Load(), n.unsettled.Load(), n.together.Load(),
		r.looks.Load())
	t.Logf("faults over HTTP: %v; on the way to PostgreSQL: %v", overHTTP, toPostgres)
	for f := cutBefore; r.ids && f < numFaults; f++ {
		if overHTTP[f] == 0 {
			t.Errorf("%s: never happened", f)
		}
	}
	if n.lost.Load() == 0 || r.looks.Load() == 0 || r.ids && (n.replayed.Load() == 0 || n.refused.Load() == 0) {
		t.Error("too little happened: this run proves nothing")
	}
}

// passed lists the limits that were passed on the way.
func (r *run) passed() (all []string) {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	for what := range r.ledger.passed {
		all = append(all, fmt.Sprintf("a limit was passed: %s", what))
	}
	slices.Sort(all)
	return all
}
