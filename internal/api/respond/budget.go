package respond

import "sync/atomic"

// Free is how many bytes each request may hold without asking a Budget: as many as a new
// Buffer has. Bodies of hits are smaller, and so touch no counter that all share.
const Free = 4 << 10

// A Budget bounds the bytes that the bodies and answers of all requests take together,
// beside what is free to each. It is safe for concurrent use, and takes no lock.
type Budget struct {
	most    int64
	taken   atomic.Int64
	refused atomic.Int64
}

// NewBudget makes a budget of so many bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// Taken is how many bytes are taken now, never more than the budget has.
func (b *Budget) Taken() int64 { return b.taken.Load() }

// Refused is how often bytes were asked for in vain.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// take takes n bytes, all or none.
func (b *Budget) take(n int64) bool {
	for {
		taken := b.taken.Load()
		if taken+n > b.most {
			b.refused.Add(1)
			return false
		}
		if b.taken.CompareAndSwap(taken, taken+n) {
			return true
		}
	}
}

func (b *Budget) give(n int64) { b.taken.Add(-n) }
