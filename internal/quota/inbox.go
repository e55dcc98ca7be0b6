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

// enqueue adds items behind those that wait, of which there may be most. It returns how
// many it added, and of the others why not: ErrBusy, or ErrStopped when the engine stops.
func (b *inbox[T]) enqueue(most int, items ...T) (added int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return 0, ErrStopped
	}
	if added = min(len(items), max(0, most-len(b.queue))); added < len(items) {
		err = ErrBusy
	}
	if b.queue = append(b.queue, items[:added]...); len(b.queue) == added {
		b.signal()
	}
	return added, err
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
