package queue

import (
	"sync"

	"quotad/internal/quota/session"
)

// Inbox is the queue of a lane or a ledger: callers add to it, and one goroutine takes from it.
type Inbox[T any] struct {
	wake chan struct{} // holds one token when there is something to do

	Mu      sync.Mutex
	Queue   []T
	Stopped bool
}

// NewInbox is an empty one.
func NewInbox[T any]() Inbox[T] { return Inbox[T]{wake: make(chan struct{}, 1)} }

// Enqueue adds items behind those that wait; most bounds how many items wait. Enqueue returns how
// many items it added, and why not the others: ErrBusy, or ErrStopped when the engine stops.
func (b *Inbox[T]) Enqueue(most int, items ...T) (added int, err error) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Stopped {
		return 0, session.ErrStopped
	}
	if added = min(len(items), max(0, most-len(b.Queue))); added < len(items) {
		err = session.ErrBusy
	}
	if b.Queue = append(b.Queue, items[:added]...); len(b.Queue) == added {
		b.Signal()
	}
	return added, err
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

// Run calls next while anything waits, until Stop. Items wait in the queue; held reports
// whether the worker itself has kept any back.
func (b *Inbox[T]) Run(held func() bool, next func()) {
	for {
		b.Mu.Lock()
		waiting, stopped := len(b.Queue) > 0 || held(), b.Stopped
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
