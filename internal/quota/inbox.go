package quota

import "sync"

// inbox is where callers leave what a goroutine of its own works on.
type inbox[T any] struct {
	wake chan struct{} // holds one token when there is something to do

	mu      sync.Mutex
	queue   []T
	stopped bool
}

func newInbox[T any]() inbox[T] { return inbox[T]{wake: make(chan struct{}, 1)} }

// enqueue adds an item behind those that wait, of which there may be most. ErrBusy when
// there are, ErrStopped when the engine stops: then it was not added.
func (b *inbox[T]) enqueue(item T, most int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return ErrStopped
	}
	if len(b.queue) >= most {
		return ErrBusy
	}
	if b.queue = append(b.queue, item); len(b.queue) == 1 {
		b.signal()
	}
	return nil
}

func (b *inbox[T]) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// stop lets run end once nothing waits.
func (b *inbox[T]) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.signal()
}

// run calls next while anything waits, here or by held elsewhere, until it is stopped.
func (b *inbox[T]) run(held func() bool, next func()) {
	for {
		b.mu.Lock()
		waiting, stopped := len(b.queue) > 0 || held(), b.stopped
		b.mu.Unlock()
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
