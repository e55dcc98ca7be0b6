package respond

import (
	"errors"
	"sync/atomic"

	"quotad/internal/quota/queue"
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

// A Budget bounds the bytes that the bodies and answers of all requests take together, beside what
// is free to each: see queue.Shares.
type Budget struct {
	most          int64
	shares        *queue.Shares
	refused, over atomic.Int64
}

// NewBudget makes a budget of so many bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most, shares: queue.NewShares(most)} }

// Most is how many bytes the budget has.
func (b *Budget) Most() int64 { return b.most }

// Taken is how many bytes are taken now, never more than the budget has.
func (b *Budget) Taken() int64 {
	bytes, _ := b.shares.Taken()
	return bytes
}

// Refused is how often bytes were asked for in vain, for whatever reason.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// OverShare is how often the reason was ErrMemoryShare.
func (b *Budget) OverShare() int64 { return b.over.Load() }

// take takes n bytes, all or none, for a request that has held bytes already. Errors: ErrMemory,
// ErrMemoryShare.
func (b *Budget) take(from queue.SenderID, held, n int64) error {
	switch none, over := b.shares.Take(from, held, n); {
	case none:
		b.refused.Add(1)
		return ErrMemory
	case over:
		b.refused.Add(1)
		b.over.Add(1)
		return ErrMemoryShare
	}
	return nil
}
