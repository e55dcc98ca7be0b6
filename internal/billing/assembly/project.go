package assembly

import (
	"maps"
	"math"
	"math/bits"
)

const (
	// leastElapsed is how much of a period a projection needs at least, in µs, and leastShare which
	// part of the period. Usage of a shorter time says little about the rest.
	leastElapsed = 10 * 60 * 1_000_000
	leastShare   = 100
)

// Projected is the input of the invoice that the period would have if its usage went on to the
// period's end at the pace of the period so far. Only the usage is another one: all else stays as it
// is. now is an instant of the period, µs. left is how many units of a meter may still be used in the period: its usage stops there. A
// meter that left lacks has no such bound. ok is false while less than ten minutes or a hundredth of the period has passed.
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

// extrapolated is units·whole/elapsed, rounded half up. It stops at 2⁶³−1. Units below 0, of which
// more was given back than used, stay: nothing says that more will be given back.
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
