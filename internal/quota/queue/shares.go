package queue

import "sync"

// Shares are units of a limited resource of a node: places, or bytes of memory. A sender may use at most half of
// the units, unless a single request needs more. Requests do not wait for units. Shares is safe for concurrent
// use.
type Shares struct {
	most int64

	mu    sync.Mutex
	taken int64
	of    map[SenderID]int64 // the units that each sender with units has taken
}

// NewShares returns Shares with most units.
func NewShares(most int64) *Shares { return &Shares{most: most, of: make(map[SenderID]int64)} }

// Take takes n units for a request that has already taken held units. It takes all or nothing. none reports that
// fewer than n units are available. over reports that the sender has other requests, too, and would have more than
// half of all units.
func (s *Shares) Take(from SenderID, held, n int64) (none, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[from]
	none, over = s.taken+n > s.most, own > held && own+n > s.most/2
	if !none && !over {
		s.taken += n
		s.of[from] = own + n
	}
	return none, over
}

// Give returns n taken units.
func (s *Shares) Give(from SenderID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.of[from] -= n; s.of[from] == 0 {
		delete(s.of, from)
	}
}

// Taken returns the number of units that are taken now, which never exceeds the total, and the number of senders
// that took them.
func (s *Shares) Taken() (units int64, senders int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, len(s.of)
}
