package respond

import (
	"errors"
	"sync/atomic"

	"quotad/internal/quota/queue"
)

// Free is the number of bytes that each request may use without a Budget. A new Buffer has this size. The bodies
// of hits are smaller, so hits need no shared lock.
const Free = 4 << 10

// The reasons for which a Budget grants no bytes.
var (
	// ErrMemory reports that the requests in progress use all bytes.
	ErrMemory = errors.New("bodies and answers take all the memory that they may")
	// ErrMemoryShare reports that requests of the same sender use half of the bytes, or would exceed half.
	ErrMemoryShare = errors.New("bodies and answers of one sender take all the memory that they may")
)

// Budget limits the bytes that the bodies and responses of all requests use together, in addition to the free
// bytes of each request. See queue.Shares.
type Budget struct {
	most          int64
	shares        *queue.Shares
	refused, over atomic.Int64
}

// NewBudget returns a budget of most bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most, shares: queue.NewShares(most)} }

// Most returns the size of the budget in bytes.
func (b *Budget) Most() int64 { return b.most }

// Taken returns the number of bytes in use, which never exceeds the size of the budget.
func (b *Budget) Taken() int64 {
	bytes, _ := b.shares.Taken()
	return bytes
}

// Refused returns the number of requests for bytes that were refused for any reason.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// OverShare returns the number of requests for bytes that were refused with ErrMemoryShare.
func (b *Budget) OverShare() int64 { return b.over.Load() }

// take reserves n bytes, or no bytes, for a request that has already reserved held bytes. Errors: ErrMemory,
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
