package respond

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Free is how many bytes each request may hold without asking a Budget: as many as a new
// Buffer has. Bodies of hits are smaller, and so take no lock that all share.
const Free = 4 << 10

// Why a Budget gives no bytes.
var (
	// ErrMemory: the requests under way have taken all.
	ErrMemory = errors.New("bodies and answers take all the memory that they may")
	// ErrMemoryShare: other requests of the same sender have taken half, or would have with these.
	ErrMemoryShare = errors.New("bodies and answers of one sender take all the memory that they may")
)

// A Budget bounds the bytes that the bodies and answers of all requests take together,
// beside what is free to each. A sender may take half of it, and one request at a time may
// take more. A Budget is safe for concurrent use.
type Budget struct {
	most          int64
	refused, over atomic.Int64

	mu    sync.Mutex
	taken int64
	of    map[string]int64 // taken by each sender that has any
}

// NewBudget makes a budget of so many bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most, of: make(map[string]int64)} }

// Taken is how many bytes are taken now, never more than the budget has.
func (b *Budget) Taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

// Refused is how often bytes were asked for in vain, for whatever reason.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// OverShare is how often the reason was ErrMemoryShare.
func (b *Budget) OverShare() int64 { return b.over.Load() }

// take takes n bytes, all or none, for a request that has held bytes already. Errors: ErrMemory,
// ErrMemoryShare.
func (b *Budget) take(from string, held, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of[from]
	switch {
	case b.taken+n > b.most:
		b.refused.Add(1)
		return ErrMemory
	case own > held && own+n > b.most/2:
		b.refused.Add(1)
		b.over.Add(1)
		return ErrMemoryShare
	}
	b.taken += n
	b.of[from] = own + n
	return nil
}

func (b *Budget) give(from string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
	if b.of[from] -= n; b.of[from] == 0 {
		delete(b.of, from)
	}
}
