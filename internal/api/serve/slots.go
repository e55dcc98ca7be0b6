package serve

import (
	"sync/atomic"

	"quotad/internal/quota/queue"
)

// Slots is a number of places for requests. One key may occupy at most half of them. Requests do not wait for a
// place.
type Slots struct {
	*queue.Shares
	full, own error // errors of Take: for all places, and for the share of one key

	Over atomic.Int64 // requests that were rejected because their key had used its share
}

// NewSlots returns places. full is the error if all places are occupied, and own is the error if one key has
// used its share.
func NewSlots(places int64, full, own error) *Slots {
	return &Slots{Shares: queue.NewShares(places), full: full, own: own}
}

// Take occupies a place. Errors: own, full.
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

// GiveBack frees an occupied place.
func (s *Slots) GiveBack(from queue.SenderID) { s.Give(from, 1) }
