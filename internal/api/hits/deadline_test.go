package hits

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// ended waits for a deadline to end, and returns why.
func ended(t *testing.T, d *deadline) error {
	t.Helper()
	select {
	case <-d.Done():
		return d.Err()
	case <-time.After(testkit.Patience):
		t.Fatal("it did not end")
		return nil
	}
}

// waiting is how many wait.
func (w *waits) waiting() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for d := w.oldest; d != nil; d = d.newer {
		n++
	}
	return n
}

func TestDeadlineComesInTime(t *testing.T) {
	const after = 100 * time.Millisecond
	w := newWaits(after)
	for range 2 { // the second time when the timer has stopped
		start := time.Now()
		d := w.until(t.Context())
		if err := ended(t, d); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		if waited := time.Since(start); waited < after {
			t.Errorf("it ended after %s, before its time", waited)
		}
		if w.waiting() != 0 {
			t.Error("it is still among those that wait")
		}
		d.end()
		if err := d.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("once answered it says %v", err)
		}
	}
}

// Anybody may keep a context: it stays ended, whatever requests come after it.
func TestKeptDeadline(t *testing.T) {
	w := newWaits(time.Hour)
	kept := w.until(t.Context())
	kept.end()
	for range 100 {
		d := w.until(t.Context())
		if err := kept.Err(); !errors.Is(err, context.Canceled) {
			t.Fatalf("the request was answered, and its context says %v", err)
		}
		if d.Err() != nil {
			t.Fatal("another request ended with it")
		}
		d.end()
	}
}

// A client that goes away is noticed, whoever else waits.
func TestDeadlineEndsWithItsRequest(t *testing.T) {
	w := newWaits(time.Hour)
	w.every = time.Millisecond
	request, giveUp := context.WithCancel(t.Context())
	before, d, behind := w.until(t.Context()), w.until(request), w.until(t.Context())
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	giveUp()
	if err := ended(t, d); !errors.Is(err, context.Canceled) {
		t.Errorf("the client went away: %v", err)
	}
	if n := w.waiting(); n != 2 {
		t.Errorf("%d wait, want the 2 others", n)
	}
	for _, other := range []*deadline{before, behind} {
		if other.Err() != nil {
			t.Errorf("another one ended, too: %v", other.Err())
		}
		other.end()
	}
	if w.waiting() != 0 {
		t.Error("ended ones are still among those that wait")
	}
}

// Contexts made from it end with it, and at the latest when the request is answered.
func TestDeadlinePassesOn(t *testing.T) {
	for name, c := range map[string]struct {
		after    time.Duration
		answered bool
		want     error
	}{
		"over":     {50 * time.Millisecond, false, context.DeadlineExceeded},
		"answered": {time.Hour, true, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			d := newWaits(c.after).until(t.Context())
			derived, cancel := context.WithTimeout(d, time.Hour)
			defer cancel()
			if c.answered {
				d.end()
			}
			select {
			case <-derived.Done():
			case <-time.After(testkit.Patience):
				t.Fatal("what was made from it goes on")
			}
			if err := derived.Err(); !errors.Is(err, c.want) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// For the race detector: many at once, asked for and ended from several goroutines.
func TestManyDeadlines(t *testing.T) {
	w := newWaits(50 * time.Millisecond)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			request, giveUp := context.WithCancel(t.Context())
			d := w.until(request)
			for range 4 {
				all.Go(func() { <-d.Done(); _ = d.Err() })
			}
			switch i % 3 {
			case 0:
				giveUp()
			case 1:
				d.end()
			}
			<-d.Done()
			d.end()
			giveUp()
		})
	}
	all.Wait()
	if w.waiting() != 0 {
		t.Error("some still wait")
	}
}
