package closing

import (
	"fmt"
	"sync"
	"testing"

	"quotad/internal/testkit/planstest"
)

// calls are the clocks that the worker is to look at.
func (w *world) calls() int64 { return planstest.Count(w, w.store, `count(*) FROM clock_calls`) }

// The worker looks at clocks that were set or whose customers were written, and at no others.
func TestOnlyClocksWithSomethingDueAreLookedAt(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[]`)
	const clocks = 20
	ids := make([]int64, clocks)
	for i := range clocks {
		key := fmt.Sprintf("clock%d", i)
		planstest.SetClock(t, w.store, key, "2026-01-01T00:00:00Z")
		in := planstest.OnPlan("pro")
		in.TestClock, in.BillingAnchor = &key, "2026-01-01T00:00:00"
		ids[i] = planstest.PutCustomer(t, w.store, key, in).ID
	}
	w.workOff()
	if n := w.calls(); n != 0 {
		t.Errorf("nothing is due, and %d calls are left", n)
	}
	planstest.SetClock(t, w.store, "clock7", "2026-02-01T00:00:10Z")
	planstest.SetClock(t, w.store, "clock9", "2026-01-05T00:00:00Z")
	planstest.SetClock(t, w.store, "nobodys", "2026-01-05T00:00:00Z")
	planstest.SetClock(t, w.store, "nobodys", "2026-01-06T00:00:00Z")
	if n := w.calls(); n != 2 {
		t.Errorf("%d calls of two clocks", n)
	}
	w.workOff()
	for i, id := range ids {
		if got := len(w.stored(id)); got != map[bool]int{true: 1}[i == 7] {
			t.Errorf("customer %d has %d invoices", i, got)
		}
	}
	if n := w.calls(); n != 0 {
		t.Errorf("all is done, and %d calls are left", n)
	}
}

// Clocks are set and customers written while nodes work and remove calls. Nothing that is due is
// forgotten.
func TestNoCallIsLost(t *testing.T) {
	w := newWorld(t)
	other := anotherNode(t, w.url)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[]`)
	const clocks, rounds = 4, 8
	for i := range clocks {
		planstest.SetClock(t, w.store, fmt.Sprint("clock", i), "2026-01-01T00:00:00Z")
	}
	var all sync.WaitGroup
	for i := range clocks {
		all.Go(func() {
			key := fmt.Sprint("clock", i)
			for round := range rounds {
				in := planstest.OnPlan("pro")
				in.TestClock, in.BillingAnchor = &key, "2026-01-01T00:00:00"
				planstest.PutCustomer(t, w.store, fmt.Sprint(key, "-", round), in)
				planstest.SetClock(t, w.store, key, fmt.Sprintf("2026-%02d-01T00:00:20Z", 2+round))
			}
		})
	}
	ended := make(chan struct{})
	var working sync.WaitGroup
	for _, n := range []*world{w, other} {
		working.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					n.check(n.worker.WorkOff(t.Context()))
				}
			}
		})
	}
	all.Wait()
	close(ended)
	working.Wait()
	w.workOff()
	late := planstest.Count(t, w.store, `count(*) FROM open_periods o JOIN test_clocks t ON t.id = o.clock_id WHERE o.due_at <= t.now`)
	if late != 0 || w.calls() != 0 {
		t.Errorf("%d customers are due still, and %d calls are left", late, w.calls())
	}
	const made = clocks * rounds
	if n := planstest.Count(t, w.store, `count(*) FROM open_periods`); n != made {
		t.Errorf("%d customers", n)
	}
}
