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

// Who awaits something is told in time, whatever ends the wait, and those that nobody knows
// any more are used again.
func TestAwait(t *testing.T) {
	rung, silent := make(chan struct{}, 1), make(chan struct{})
	for name, c := range map[string]struct {
		after time.Duration
		bell  chan struct{}
		gone  bool // the client
		want  error
	}{
		"the bell":           {time.Hour, rung, false, nil},
		"too long":           {50 * time.Millisecond, silent, false, context.DeadlineExceeded},
		"the client is gone": {time.Hour, silent, true, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits(c.after)
			w.every = time.Millisecond
			request, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			d := w.until(request)
			if c.bell == rung {
				rung <- struct{}{}
			} else if c.gone {
				time.AfterFunc(5*time.Millisecond, giveUp)
			}
			if rings := d.Await(c.bell); rings != (c.want == nil) || c.want != nil && !errors.Is(d.Err(), c.want) {
				t.Errorf("it rang: %v; %v", rings, d.Err())
			}
			if !d.close() || w.waiting() != 0 || len(d.over) != 0 {
				t.Errorf("it cannot be used again: %d wait, %d ended", w.waiting(), len(d.over))
			}
		})
	}
	d := newWaits(time.Hour).until(t.Context())
	rung <- struct{}{}
	d.Await(rung)
	if d.Done(); d.close() {
		t.Error("somebody may know it still")
	}
}

// For the race detector, and for tokens that stay behind: bells that ring as the wait ends.
func TestManyAwait(t *testing.T) {
	w := newWaits(time.Millisecond)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for i := range 100 {
				bell := make(chan struct{}, 1)
				d := w.until(t.Context())
				timer := time.AfterFunc(time.Duration(i%4)*time.Millisecond, func() { bell <- struct{}{} })
				if rings := d.Await(bell); !rings && !errors.Is(d.Err(), context.DeadlineExceeded) {
					t.Errorf("no bell, and %v", d.Err())
				}
				timer.Stop()
				d.end()
			}
		})
	}
	all.Wait()
	patient := newWaits(time.Hour)
	for range 100 {
		d := patient.until(t.Context())
		bell := make(chan struct{}, 1)
		time.AfterFunc(time.Microsecond, func() { bell <- struct{}{} })
		if !d.Await(bell) {
			t.Fatal("it ended for another's reason")
		}
		d.end()
	}
}
