package queue

import "sync"

// Shares are units that a node has so many of: places, or bytes of memory. Of these a sender has half
// at most, or one request has more. Requests do not wait for them. Safe for concurrent use.
type Shares struct {
	most int64

	mu    sync.Mutex
	taken int64
	of    map[SenderID]int64 // taken by each sender that has any
}

// NewShares makes so many units.
func NewShares(most int64) *Shares { return &Shares{most: most, of: make(map[SenderID]int64)} }

// Take takes n units, all or none, for a request that has held some already. It takes none when there
// are not as many (none), or when the sender's other requests have half, or would with these (over).
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

// Give gives n units back that were taken.
func (s *Shares) Give(from SenderID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.of[from] -= n; s.of[from] == 0 {
		delete(s.of, from)
	}
}

// Taken is how many units are taken now, never more than there are, and by how many senders.
func (s *Shares) Taken() (units int64, senders int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, len(s.of)
}
