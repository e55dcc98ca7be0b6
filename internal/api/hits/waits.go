package hits

import (
	"context"
	"sync"
	"time"

	"quotad/internal/fastpath"
)

// waits limits the time for which requests wait for a response. One timer serves all requests, because a timer
// and a context for each request were a twentieth of the cost of a hit. The timer ticks in rounds. Therefore the
// end of a wait, or a disconnected client, is noticed up to two rounds late.
type waits struct {
	every  time.Duration // the length of a round
	rounds uint64        // the minimum number of rounds in a wait

	mu      sync.Mutex
	round   uint64
	running bool // the timer is set; it is not reset after a round in which no request waited
	oldest  *deadline
	newest  *deadline
}

// waitRounds is the minimum number of rounds in a wait.
const waitRounds = 50

func newWaits(after time.Duration) *waits {
	every := min(max(after/waitRounds, time.Millisecond), 100*time.Millisecond)
	return &waits{every: every, rounds: uint64((after + every - 1) / every)}
}

// deadline is a request's context. It also ends when the request has waited too long, when its client has
// disconnected, and when the response is ready.
type deadline struct {
	context.Context // the request's
	waits           *waits
	done            chan struct{}
	err             error // the reason of the end; it is set before done is closed

	// The lock of waits protects the following fields.
	until        uint64 // the round in which the wait ends
	older, newer *deadline
}

// until returns a new deadline for a request. The caller must call the deadline's end method.
func (w *waits) until(request context.Context) *deadline {
	d := &deadline{Context: request, waits: w, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The present round may be about to end, so it is not counted.
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

// run sets the timer unless it is set or no request waits. The caller holds the lock.
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

// end marks the request as answered and cancels all contexts that were derived from the deadline.
func (d *deadline) end() {
	d.waits.mu.Lock()
	defer d.waits.mu.Unlock()
	d.waits.close(d, context.Canceled)
}

// close ends a deadline with the error why, unless the deadline has ended already. The caller holds the lock.
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
	d.older, d.newer = nil, nil // so that a reference to d keeps no other deadline alive
}

// next ends a round. It closes the deadlines of requests that have waited too long or whose clients have
// disconnected.
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
			// Gone makes a system call, so it is called only for requests that have waited for a whole round.
			w.close(d, context.Canceled)
		}
		d = newer
	}
	w.running = false
	w.run()
}
