package api

import (
	"sync/atomic"

	"quotad/internal/quota/queue"
)

// slots are places for requests, half of them for one key at most. Requests do not wait for one.
type slots struct {
	*queue.Shares
	full, own error // why there is no place: for anybody, and for one key

	over atomic.Int64 // requests that were turned away, since their key had its share
}

// newSlots makes places. full says that there is none for anybody, and own that one key has its
// share.
func newSlots(places int64, full, own error) *slots {
	return &slots{Shares: queue.NewShares(places), full: full, own: own}
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
