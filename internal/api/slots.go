package api

import (
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
	*queue.Shares
	full, own error // why there is no place: for anybody, and for one key

	over atomic.Int64 // requests that were turned away, since their key had its share
}

// take takes a place. Errors: own, full.
func (s *slots) take(from queue.SenderID) error {
	switch none, over := s.Take(from, 0, 1); {
	case over:
		s.over.Add(1)
		return s.own
	case none:
		return s.full
	}
	return nil
}

// giveBack gives a place back that was taken.
func (s *slots) giveBack(from queue.SenderID) { s.Give(from, 1) }
