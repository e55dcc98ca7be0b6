package compare

import (
	"math"
	"math/bits"
)

// mulUpTo is a product of numbers of 0 or more that stops where 64 bits do.
func mulUpTo(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// mulDivUp is ⌈a·b/c⌉ for a, b ≥ 0 and c > 0, and stops where 64 bits do.
func mulDivUp(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return math.MaxInt64
	}
	q, r := bits.Div64(high, low, uint64(c))
	if r > 0 {
		q++
	}
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}

// Range is a number that is known to lie between two.
type Range struct{ Least, Most int64 }

// order puts the smaller number first.
func (r *Range) order() { r.Least, r.Most = min(r.Least, r.Most), max(r.Least, r.Most) }
