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

	mu     sync.Mutex
	round  uint64
	timer  *time.Timer // nil before the first wait; it runs while anybody waits
	oldest *deadline
	newest *deadline
}

// waitRounds is how many rounds a wait has at least.
const waitRounds = 50

func newWaits(after time.Duration) *waits {
	every := min(max(after/waitRounds, time.Millisecond), 100*time.Millisecond)
	return &waits{every: every, rounds: uint64((after + every - 1) / every)}
}

// deadline is a request's context with a bound on how long it may wait. The bound runs
// from the first time that somebody asks for Done or awaits something: what is answered from
// memory does neither, and so does not even join those who wait. It must be ended.
type deadline struct {
	context.Context // the request's
	waits           *waits
	over            chan struct{} // receives at its end; nil until the first Await

	// All of it under the lock of waits.
	done         chan struct{} // nil: nobody asked for it
	err          error         // why it has ended
	waiting      bool          // it is among those that wait
	until        uint64        // the round in which the wait ends
	older, newer *deadline     // those that wait
}

// deadlines are ended ones that nobody knows any more: whoever keeps a context asks for its Done.
// (context.WithoutCancel and WithValue alone do not: they must not outlive the request.)
var deadlines = sync.Pool{New: func() any { return new(deadline) }}

// until makes a request's deadline.
func (w *waits) until(request context.Context) *deadline {
	d := deadlines.Get().(*deadline) //nolint:forcetypeassert // nothing else is in there
	*d = deadline{Context: request, waits: w, over: d.over}
	return d
}

// Await implements quota.Awaiter.
func (d *deadline) Await(bell <-chan struct{}) bool {
	if !d.join() {
		return false
	}
	select {
	case <-bell:
		return true
	case <-d.over:
		return false
	}
}

// join joins those who wait, unless the deadline has ended.
func (d *deadline) join() bool {
	w := d.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.over == nil {
		d.over = make(chan struct{}, 1)
	}
	if d.err == nil && !d.waiting {
		w.join(d)
	}
	return d.err == nil
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	w := d.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		if d.err != nil {
			close(d.done)
		} else if !d.waiting {
			w.join(d)
		}
	}
	return d.done
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.waits.mu.Lock()
	defer d.waits.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	return d.Context.Err()
}

// end says that the request is answered: nothing made from the deadline lives on, and nobody
// may use it any more.
func (d *deadline) end() {
	if d.close() {
		deadlines.Put(d)
	}
}

// close closes what is made of the deadline, and reports whether nobody knows it any more.
func (d *deadline) close() (forgotten bool) {
	d.waits.mu.Lock()
	defer d.waits.mu.Unlock()
	if d.err == nil {
		d.waits.close(d, context.Canceled)
	}
	select {
	case <-d.over:
	default:
	}
	return d.done == nil
}

// join adds one who waits, the newest of all. The lock is held, as in all that follow.
func (w *waits) join(d *deadline) {
	d.waiting = true
	// The round that runs may be about to end.
	d.until = w.round + w.rounds + 1
	d.older, w.newest = w.newest, d
	if d.older != nil {
		d.older.newer = d
		return
	}
	w.oldest = d
	if w.timer == nil {
		w.timer = time.AfterFunc(w.every, w.next)
	} else {
		w.timer.Reset(w.every)
	}
}

// close ends one, and its wait, if it began.
func (w *waits) close(d *deadline, why error) {
	d.err = why
	if !d.waiting {
		return
	}
	d.waiting = false
	if d.over != nil {
		d.over <- struct{}{} // there is room: it is sent once, and taken before the next use
	}
	if d.done != nil {
		close(d.done)
	}
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
	d.older, d.newer = nil, nil
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
	if w.oldest != nil {
		w.timer.Reset(w.every)
	}
}
