package serve

import (
	"context"
	"sync"

	"quotad/internal/quota/queue"
)

// Turns are places for work, of which there are few: requests wait for one. The keys that wait
// are served in turn, and the requests of each key first come, first served. So a key's request
// waits for at most one of each other key, however many of these wait.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting queue.Lines[*inTurn]
}

// inTurn is a request that waits.
type inTurn struct {
	from  queue.SenderID
	place chan struct{} // receives once
}

// Sender implements queue.Item.
func (w *inTurn) Sender() queue.SenderID { return w.from }

// Hits implements queue.Item.
func (*inTurn) Hits() int { return 1 }

// Rows implements queue.Item.
func (*inTurn) Rows() int { return 1 }

// NewTurns makes places, one at least.
func NewTurns(places int) *Turns { return &Turns{free: max(1, places)} }

// Take waits for a place. The error is ctx's.
func (t *Turns) Take(ctx context.Context, from queue.SenderID) error {
	w := t.wait(from)
	if w == nil {
		return nil
	}
	select {
	case <-w.place:
		return nil
	case <-ctx.Done():
		t.leave(w)
		return ctx.Err()
	}
}

// wait takes a free place and returns nil. If there is none, it returns who waits for one.
func (t *Turns) wait(from queue.SenderID) *inTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		return nil
	}
	w := &inTurn{from, make(chan struct{}, 1)}
	t.waiting.Add(w)
	return w
}

// leave ends a wait. A place that came meanwhile goes to the next one.
func (t *Turns) leave(w *inTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.waiting.Remove(w) {
		t.next()
	}
}

// Waiting is how many requests wait for a place.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting.Hits()
}

// GiveBack gives a place back that was taken.
func (t *Turns) GiveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next hands a place to whoever's turn it is. The caller holds the lock.
func (t *Turns) next() {
	t.free++
	t.waiting.Take(1, func(w *inTurn) bool {
		w.place <- struct{}{} // it has room for one
		t.free--
		return true
	})
}
