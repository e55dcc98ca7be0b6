package respond

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"quotad/internal/quota/queue"
)

// A buffer takes from the budget what it has beyond its free bytes, and gives it back once.
func TestBudget(t *testing.T) {
	const most = 10 << 10
	budget := NewBudget(most)
	a, b := Buffer{From: "a"}, Buffer{From: "b"}
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
		if ok := step.buf.Grow(budget, step.size) == nil; ok != step.ok || budget.Taken() != step.taken {
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
	for i := range callers {
		all.Go(func() {
			for range 10_000 {
				buf := Buffer{From: queue.SenderID(strconv.Itoa(i))}
				_ = buf.Hold(budget, Free+size)
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

// A sender has half of the budget, for as many requests as it likes. Alone a request may have all
// of it.
func TestShareOfABudget(t *testing.T) {
	const most = 100
	budget := NewBudget(most)
	bufs := map[string]*Buffer{}
	for _, step := range []struct {
		who  string // the sender, and which of its requests
		size int
		err  error
	}{
		{"a1", 60, nil}, // more than half, but alone
		{"a1", 80, nil},
		{"a2", 1, ErrMemoryShare},
		{"b1", 20, nil}, // there is room for others
		{"b2", 1, ErrMemory},
		{"a1", 0, nil}, // it ends
		{"a1", 30, nil},
		{"a2", 20, nil},
		{"a3", 1, ErrMemoryShare},
		{"a2", 21, ErrMemoryShare},
		{"b2", 30, nil},
		{"b3", 1, ErrMemory},
	} {
		buf := bufs[step.who]
		if buf == nil {
			buf = &Buffer{From: queue.SenderID(step.who[:1])}
			bufs[step.who] = buf
		}
		if step.size == 0 {
			buf.Release()
			continue
		}
		if err := buf.Hold(budget, Free+step.size); !errors.Is(err, step.err) {
			t.Fatalf("%s, %d bytes: %v, want %v", step.who, step.size, err, step.err)
		}
	}
	for _, buf := range bufs {
		buf.Release()
	}
	if taken, by := budget.shares.Taken(); taken != 0 || by != 0 {
		t.Errorf("%d bytes are taken, by %d", taken, by)
	}
	if budget.OverShare() != 3 || budget.Refused() != 5 {
		t.Errorf("%d were over their share, of %d refused", budget.OverShare(), budget.Refused())
	}
}
