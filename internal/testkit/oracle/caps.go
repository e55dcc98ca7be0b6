package oracle

import (
	"math"
	"sort"
)

// mostUnits is more than any customer uses, or any cap of a test is.
const mostUnits = int64(1e12)

// Cap sets what a meter may cost in a period, in minor units; below 0: anything.
func (l *Life) Cap(meter string, minor int64) {
	if l.caps == nil {
		l.caps = map[string]int64{}
	}
	if l.caps[meter] = minor; minor < 0 {
		delete(l.caps, meter)
	}
}

// Caps are the caps, by meter.
func (l *Life) Caps() map[string]int64 { return l.caps }

// CapUnits is how many units of a capped meter may be used in the running period: the last n such that no
// number up to n costs more than the amount, or than no units cost where that is more. ok is false where any
// number may be used.
func (l *Life) CapUnits(meter string) (n int64, ok bool) {
	p, minor := l.open(), int64(0)
	if minor, ok = l.caps[meter]; !ok || p == nil || p.priceOf(meter) == nil {
		return 0, false
	}
	costs := func(units int64) int64 { return p.usage(meter, units).Minor }
	most, price := max(minor, costs(0)), p.priceOf(meter)
	// Within a tier more units never cost less. In a tier after it they may.
	below, ends := int64(0), []int64{}
	for _, t := range price.Tiers {
		if t.UpTo != nil {
			ends = append(ends, p.share.Units(price.Included)+*t.UpTo)
		}
	}
	for _, end := range append(ends, mostUnits) {
		if costs(end) > most {
			over := sort.Search(int(end-below), func(i int) bool { return costs(below+1+int64(i)) > most })
			return below + int64(over), true
		}
		below = end
	}
	return 0, false
}

// CapLeaves is how many more units a cap admits now; below 0 where more is used than it has, and the most
// of all without a cap.
func (l *Life) CapLeaves(meter string) int64 {
	units, capped := l.CapUnits(meter)
	if !capped {
		return math.MaxInt64
	}
	return units - l.count(l.open(), meter)
}
