package api

import (
	"sync"
	"sync/atomic"

	"quotad/internal/quota/queue"
)

const (
	// maxBatches is how many batches a node works on at once, from when their bodies are
	// there until they are decided: what each takes in memory is a multiple of its body.
	maxBatches = 64
	// maxOwnBatches is how many of these are one key's, so that others find a place.
	maxOwnBatches = maxBatches / 2
)

// slots are places for requests, half of them for one key at most. Requests do not wait for one.
type slots struct {
	most      int
	full, own error // why there is no place: for anybody, and for one key

	over atomic.Int64 // requests that were turned away, since their key had its share

	mu    sync.Mutex
	taken int
	of    map[queue.SenderID]int // taken by each key that has any
}

// take takes a place. Errors: own, full.
func (s *slots) take(from queue.SenderID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.of[from] >= s.most/2:
		s.over.Add(1)
		return s.own
	case s.taken >= s.most:
		return s.full
	}
	if s.of == nil {
		s.of = make(map[queue.SenderID]int)
	}
	s.taken++
	s.of[from]++
	return nil
}

// giveBack gives a place back that was taken.
func (s *slots) giveBack(from queue.SenderID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[from]--; s.of[from] == 0 {
		delete(s.of, from)
	}
}
