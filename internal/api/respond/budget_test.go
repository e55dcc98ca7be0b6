package respond

import (
	"sync"
	"testing"
)

// A buffer takes from the budget what it has beyond its free bytes, and gives it back once.
func TestBudget(t *testing.T) {
	const most = 10 << 10
	budget := NewBudget(most)
	var a, b Buffer
	for _, step := range []struct {
		buf   *Buffer
		size  int
		ok    bool
		taken int64
	}{
		{&a, Free, true, 0},
		{&a, Free + 1, true, 1},
		{&a, 2 * Free, true, Free},
		{&a, Free, true, Free},
		{&b, Free + most - Free + 1, false, Free},
		{&b, Free + most - Free, true, most},
		{&a, 2*Free + 1, false, most},
	} {
		before := step.buf.Room()
		if ok := step.buf.Grow(budget, step.size); ok != step.ok || budget.Taken() != step.taken {
			t.Fatalf("%d bytes: %t, %d are taken, not %d", step.size, ok, budget.Taken(), step.taken)
		}
		if want := max(before, step.size); step.ok && step.buf.Room() < want || !step.ok && step.buf.Room() != before {
			t.Fatalf("%d bytes: there is room for %d", step.size, step.buf.Room())
		}
	}
	if budget.Refused() != 2 {
		t.Errorf("%d were refused", budget.Refused())
	}
	for range 2 {
		a.Release()
		b.Release()
		if taken := budget.Taken(); taken != 0 {
			t.Errorf("%d are taken by nobody", taken)
		}
	}
	if a.Room() > Free {
		t.Errorf("there is room for %d that nobody took", a.Room())
	}
}

// However many ask at once, no more is taken than there is.
func TestBudgetAtOnce(t *testing.T) {
	const callers, size = 8, 1000
	budget := NewBudget(callers / 2 * size)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range 10_000 {
				var buf Buffer
				buf.Hold(budget, Free+size)
				if taken := budget.Taken(); taken > callers/2*size {
					t.Errorf("%d are taken", taken)
				}
				buf.Release()
			}
		})
	}
	all.Wait()
	if taken := budget.Taken(); taken != 0 {
		t.Errorf("%d are taken by nobody", taken)
	}
}
