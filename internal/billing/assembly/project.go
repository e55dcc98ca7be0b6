package assembly

import (
	"maps"
	"math"
	"math/bits"
)

const (
	// leastElapsed is the minimum elapsed time for a projection, in µs. At least 1/leastShare of the period
	// must have elapsed, too. Usage of a shorter time is a poor estimate of the rest.
	leastElapsed = 10 * 60 * 1_000_000
	leastShare   = 100
)

// Projected returns the input for the invoice that the period would have if usage continued at the period's
// pace so far. Only the usage differs from in. now is an instant of the period, µs. left is the number of
// units of a meter that may still be used, and limits the projected usage. A meter missing from left has no
// such limit. ok is false until ten minutes and a hundredth of the period have passed.
func (in Input) Projected(now int64, left map[string]int64) (projected Input, ok bool) {
	p := &in.Terms.Period
	elapsed, whole := now-p.Start, p.End-p.Start
	if elapsed < leastElapsed || elapsed < whole/leastShare || elapsed > whole {
		return in, false
	}
	in.Usage = maps.Clone(in.Usage)
	for meter, units := range in.Usage {
		more := extrapolated(units, elapsed, whole)
		if most, bound := left[meter]; bound && more > units && more-units > most {
			more = units + most
		}
		in.Usage[meter] = more
	}
	return in, true
}

// extrapolated returns units·whole/elapsed, rounded half up and limited to 2⁶³−1. It returns units of 0 or
// less unchanged. A negative number means more refunds than usage, which is no evidence of further refunds.
func extrapolated(units, elapsed, whole int64) int64 {
	if units <= 0 {
		return units
	}
	high, low := bits.Mul64(uint64(units), uint64(whole))
	if high >= uint64(elapsed) {
		return math.MaxInt64
	}
	quotient, rest := bits.Div64(high, low, uint64(elapsed))
	if rest >= uint64(elapsed)-rest {
		quotient++
	}
	return int64(min(quotient, math.MaxInt64))
}
