package api

import (
	"context"
	"sync"
	"time"

	"quotad/internal/fastpath"
)

// waits are the requests that wait for an answer, each for no longer than it may. One
// timer serves all: one of its own, in a context of its own, was a twentieth of what a hit
// costs. So a wait ends, and a client that went away is noticed, up to two rounds late.
type waits struct {
	every  time.Duration // from round to round
	rounds uint64        // that a wait lasts at least

	mu      sync.Mutex
	round   uint64
	running bool // the timer; it stops with the round in which nobody waits
	oldest  *deadline
	newest  *deadline
}

// waitRounds is how many rounds a wait has at least.
const waitRounds = 50

func newWaits(after time.Duration) *waits {
	every := min(max(after/waitRounds, time.Millisecond), 100*time.Millisecond)
	return &waits{every: every, rounds: uint64((after + every - 1) / every)}
}

// deadline is a request's context, which also ends when the request has waited for too long,
// when its client has gone away, and when it is answered.
type deadline struct {
	context.Context // the request's
	waits           *waits
	done            chan struct{}
	err             error // why it has ended; it is set before done is closed

	// Under the lock of waits.
	until        uint64 // the round in which the wait ends
	older, newer *deadline
}

// until makes a request's deadline, which must be ended.
func (w *waits) until(request context.Context) *deadline {
	d := &deadline{Context: request, waits: w, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The round that runs may be about to end.
	d.until = w.round + w.rounds + 1
	d.older, w.newest = w.newest, d
	if d.older != nil {
		d.older.newer = d
	} else {
		w.oldest = d
	}
	w.run()
	return d
}

// run has the timer run while anybody waits. The lock is held.
func (w *waits) run() {
	if !w.running && w.oldest != nil {
		w.running = true
		time.AfterFunc(w.every, w.next)
	}
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err implements context.Context.
func (d *deadline) Err() error {
	select {
	case <-d.done:
		return d.err
	default:
		return nil
	}
}

// end says that the request is answered: what was made from the deadline ends, too.
func (d *deadline) end() {
	d.waits.mu.Lock()
	defer d.waits.mu.Unlock()
	d.waits.close(d, context.Canceled)
}

// close ends one, once. The lock is held.
func (w *waits) close(d *deadline, why error) {
	if d.err != nil {
		return
	}
	d.err = why
	close(d.done)
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		w.oldest = d.newer
	}
	if d.newer != nil {
		d.newer.older = d.older
	} else {
		w.newest = d.older
	}
	d.older, d.newer = nil, nil // who keeps it keeps no others
}

// next ends a round: who has waited for long enough, or has nobody left to answer, goes.
func (w *waits) next() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	for d := w.oldest; d != nil; {
		newer := d.newer
		if d.until <= w.round {
			w.close(d, context.DeadlineExceeded)
		} else if err := d.Context.Err(); err != nil {
			w.close(d, err)
		} else if d.until < w.round+w.rounds && fastpath.Gone(d.Context) {
			// Asked of those only that have waited for a whole round: it is a system call.
			w.close(d, context.Canceled)
		}
		d = newer
	}
	w.running = false
	w.run()
}
