package serve

import (
	"sync/atomic"

	"quotad/internal/quota/queue"
)

// Slots are places for requests, half of them for one key at most. Requests do not wait for one.
type Slots struct {
	*queue.Shares
	full, own error // why there is no place: for anybody, and for one key

	Over atomic.Int64 // requests that were turned away, since their key had its share
}

// NewSlots makes places. full says that there is none for anybody, and own that one key has its
// share.
func NewSlots(places int64, full, own error) *Slots {
	return &Slots{Shares: queue.NewShares(places), full: full, own: own}
}

// Take takes a place. Errors: own, full.
func (s *Slots) Take(from queue.SenderID) error {
	switch none, over := s.Shares.Take(from, 0, 1); {
	case over:
		s.Over.Add(1)
		return s.own
	case none:
		return s.full
	}
	return nil
}

// GiveBack gives a place back that was taken.
func (s *Slots) GiveBack(from queue.SenderID) { s.Give(from, 1) }
