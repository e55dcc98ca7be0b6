package queue

import (
	"math"
	"sync"
	"sync/atomic"

	"quotad/internal/quota/session"
)

// SharedRows is how many rows a flight has at most while several senders wait, or one item that
// needs more by itself. A sender that comes next then waits for a short flight only.
const SharedRows = 250

// sharedFor is how many flights stay as short after several senders waited. A caller that waits
// for its answer before it sends again comes within these, and would else wait for a long flight
// each time.
const sharedFor = 16

// Inbox is the queue of a lane or a ledger: callers add to it, and one goroutine takes flights
// from it. A flight is a lane's batch, or a ledger's transaction.
//
// A flight takes one row of each sender's line in turn, see Lines.
type Inbox[T Item] struct {
	wake chan struct{} // holds one token when there is something to do
	over *atomic.Int64 // hits that were turned away, since their sender had its share

	Mu      sync.Mutex
	Stopped bool
	waiting Lines[T]
	short   int // how many flights stay short, see sharedFor
}

// NewInbox is an empty one, which adds the hits to over that it turns away since their sender
// has its share of the queue.
func NewInbox[T Item](over *atomic.Int64) Inbox[T] {
	return Inbox[T]{wake: make(chan struct{}, 1), over: over}
}

// Enqueue adds items of one sender after those of its that wait; most bounds how many hits
// wait. A sender may wait while it has fewer hits in the queue than there is room left. So one
// sender alone has half of the queue, and there is room for one that comes next.
//
// Enqueue returns how many items it added, and why not the others: ErrShare when the sender has
// its share, ErrBusy when nothing more can wait, ErrStopped when the engine stops.
func (b *Inbox[T]) Enqueue(most int, items ...T) (added int, err error) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Stopped {
		return 0, session.ErrStopped
	}
	q := &b.waiting
	l, idle := q.lineOf(items[0].Sender()), q.hits == 0
	for ; added < len(items); added++ {
		if n := items[added].Hits(); l.hits+n > most-q.hits-n+1 {
			err = b.turnAway(l, items[added:])
			break
		}
		q.add(l, items[added])
	}
	if len(l.items) == 0 {
		q.leave(q.at - 1) // it came just now
	}
	if idle && added > 0 {
		b.Signal()
	}
	return added, err
}

// turnAway says why items cannot wait behind those in a line.
func (b *Inbox[T]) turnAway(l *line[T], items []T) error {
	if l.hits == 0 {
		return session.ErrBusy
	}
	for _, it := range items {
		b.over.Add(int64(it.Hits()))
	}
	return session.ErrShare
}

// Take makes a flight: it hands items to load until there are no more, or the flight is full.
// load returns false for an item that does not fit into the flight; it takes at least the first
// one. The item then stays, and the rest of its line.
//
// While one sender waits alone, and has for some flights, load alone says when the flight is full.
func (b *Inbox[T]) Take(load func(T) bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	room := math.MaxInt
	switch {
	case len(b.waiting.ring) > 1:
		b.short, room = sharedFor, SharedRows
	case b.short > 0:
		b.short--
		room = SharedRows
	}
	b.waiting.Take(room, load)
}

// PutBack puts items of a flight back, each in front of its sender's line, in their order. They
// have waited: no bound holds for them.
func (b *Inbox[T]) PutBack(items ...T) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.waiting.putBack(items)
}

// PutBehind moves the items that are late to the end of their lines, in their order.
func (b *Inbox[T]) PutBehind(late func(T) bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.waiting.putBehind(late)
}

// Queued is how many hits wait.
func (b *Inbox[T]) Queued() int {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.waiting.hits
}

// Signal wakes Run.
func (b *Inbox[T]) Signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Stop lets Run end once nothing waits.
func (b *Inbox[T]) Stop() {
	b.Mu.Lock()
	b.Stopped = true
	b.Mu.Unlock()
	b.Signal()
}

// Run calls next while anything waits, until Stop.
func (b *Inbox[T]) Run(next func()) {
	for {
		b.Mu.Lock()
		waiting, stopped := b.waiting.hits > 0, b.Stopped
		b.Mu.Unlock()
		switch {
		case waiting:
			next()
		case stopped:
			return
		default:
			<-b.wake
		}
	}
}
