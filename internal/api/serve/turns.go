package serve

import (
	"context"
	"sync"

	"quotad/internal/quota/queue"
)

// Turns is a small number of places for work, for which requests wait. Waiting keys are served in rotation, and
// the requests of each key in the order of their arrival. Therefore a key's next request waits for at most one
// request of every other key, however many requests these keys have.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting queue.Lines[*inTurn]
}

// inTurn is a waiting request.
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

// NewTurns returns the places, at least one.
func NewTurns(places int) *Turns { return &Turns{free: max(1, places)} }

// Take waits for a place and occupies it. Its error is the error of ctx.
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

// wait occupies a free place and returns nil. If there is no free place, it returns the waiting request.
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

// leave ends a wait. If a place was assigned meanwhile, leave passes it to the next request.
func (t *Turns) leave(w *inTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.waiting.Remove(w) {
		t.next()
	}
}

// Waiting returns the number of requests that wait for a place.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting.Hits()
}

// GiveBack frees an occupied place.
func (t *Turns) GiveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next assigns a place to the next request in the rotation. The caller holds the lock.
func (t *Turns) next() {
	t.free++
	t.waiting.Take(1, func(w *inTurn) bool {
		w.place <- struct{}{} // the channel has a buffer for one value
		t.free--
		return true
	})
}
