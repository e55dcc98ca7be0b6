package api

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// ended waits for a deadline to end, and returns why.
func ended(t *testing.T, d *deadline) error {
	t.Helper()
	select {
	case <-d.Done():
		return d.Err()
	case <-time.After(10 * time.Second):
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

func TestDeadlineRunsFromTheFirstWait(t *testing.T) {
	const after = 100 * time.Millisecond
	w := newWaits(after)
	d := w.until(t.Context())
	defer d.end()
	time.Sleep(2 * after)
	if d.Err() != nil || w.waiting() != 0 {
		t.Fatalf("the bound ran before anybody waited: %v", d.Err())
	}
	start := time.Now()
	if err := ended(t, d); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
	if waited := time.Since(start); waited < after {
		t.Errorf("it ended after %s, before its time", waited)
	}
	if w.waiting() != 0 {
		t.Error("it is still among those that wait")
	}
}

// A client that goes away is noticed, whoever else waits.
func TestDeadlineEndsWithItsRequest(t *testing.T) {
	w := newWaits(time.Hour)
	w.every = time.Millisecond
	others := []*deadline{w.until(t.Context()), w.until(t.Context())}
	request, giveUp := context.WithCancel(t.Context())
	others[0].Done()
	d := w.until(request)
	d.Done()
	others[1].Done()
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
	for _, other := range others {
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
			case <-time.After(10 * time.Second):
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
			d.Done()
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
	again := w.until(t.Context()) // when the timer has stopped
	defer again.end()
	if err := ended(t, again); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
