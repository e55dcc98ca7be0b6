package api

import (
	"context"
	"slices"
	"sync"

	"quotad/internal/quota/queue"
)

// turns are places for work, of which there are few: requests wait for one. The keys that wait
// are served in turn, and the requests of each key first come, first served. So a key's request
// waits for at most one of each other key, however many of these wait.
type turns struct {
	mu   sync.Mutex
	free int
	ring []*inTurn // the keys that wait, the next one first
}

// inTurn are the requests of one key that wait, the oldest first. There is at least one.
type inTurn struct {
	from    queue.SenderID
	waiting []chan struct{} // each receives once, with a place
}

func newTurns(places int) *turns { return &turns{free: max(1, places)} }

// take waits for a place. The error is ctx's.
func (t *turns) take(ctx context.Context, from queue.SenderID) error {
	place := t.wait(from)
	if place == nil {
		return nil
	}
	select {
	case <-place:
		return nil
	case <-ctx.Done():
		t.leave(from, place)
		return ctx.Err()
	}
}

// wait takes a free place and returns nil. If there is none, it returns what receives one.
func (t *turns) wait(from queue.SenderID) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		return nil
	}
	i := t.index(from)
	if i < 0 {
		i = len(t.ring)
		t.ring = append(t.ring, &inTurn{from: from})
	}
	place := make(chan struct{}, 1)
	t.ring[i].waiting = append(t.ring[i].waiting, place)
	return place
}

// leave ends a wait. A place that came meanwhile goes to the next one.
func (t *turns) leave(from queue.SenderID, place chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index(from)
	if i >= 0 {
		if n := slices.Index(t.ring[i].waiting, place); n >= 0 {
			if t.ring[i].waiting = slices.Delete(t.ring[i].waiting, n, n+1); len(t.ring[i].waiting) == 0 {
				t.ring = slices.Delete(t.ring, i, i+1)
			}
			return
		}
	}
	t.next()
}

// giveBack gives a place back that was taken.
func (t *turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next hands a place to whoever's turn it is. The caller holds the lock.
func (t *turns) next() {
	if len(t.ring) == 0 {
		t.free++
		return
	}
	first := t.ring[0]
	first.waiting[0] <- struct{}{} // it has room for one
	first.waiting = slices.Delete(first.waiting, 0, 1)
	t.ring = slices.Delete(t.ring, 0, 1)
	if len(first.waiting) > 0 {
		t.ring = append(t.ring, first)
	}
}

// index is where a key is in the ring, or -1.
func (t *turns) index(from queue.SenderID) int {
	return slices.IndexFunc(t.ring, func(k *inTurn) bool { return k.from == from })
}
