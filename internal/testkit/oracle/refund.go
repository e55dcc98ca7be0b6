package oracle

import (
	"cmp"
	"maps"
	"slices"
)

// Refund gives units back: those of a hit, or of the open period. It returns how many.
func (l *Life) Refund(meter string, cost int64, hit string) int64 {
	if hit == "" {
		return l.refundPresent(meter, cost)
	}
	h := l.hits[hit]
	units := min(cost, h.left)
	if open := l.open(); open != nil && open.holds(h.entry.Hour) {
		units = min(units, l.admitted(meter, h.entry.Hour, h.entry.Hour+1)) // others may have taken them
	}
	h.left -= units
	e := &Entry{Hour: h.entry.Hour, Meter: meter, Cost: -units}
	l.entries = append(l.entries, e)
	l.cameTo(e)
	return units
}

// refundPresent gives back no more than the open period has: of hits, and of all that counts.
// The newest hours give first.
func (l *Life) refundPresent(meter string, cost int64) int64 {
	p := l.open()
	units := max(0, min(cost, l.admitted(meter, p.Start, p.End), l.count(p, meter)))
	hours := map[int64]bool{}
	for _, e := range l.entries {
		if p.holds(e.Hour) {
			hours[e.Hour] = true
		}
	}
	left := units
	for _, hour := range slices.SortedFunc(maps.Keys(hours), func(a, b int64) int { return cmp.Compare(b, a) }) {
		if less := min(left, l.admitted(meter, hour, hour+1)); less > 0 {
			l.entries = append(l.entries, &Entry{Hour: hour, Meter: meter, Cost: -less})
			left -= less
		}
	}
	return units
}

// admitted is what hits and imports used of a meter in the hours of [from, to), less refunds.
// Adjustments are no hits.
func (l *Life) admitted(meter string, from, to int64) (sum int64) {
	for _, e := range l.entries {
		if e.Meter == meter && from <= e.Hour && e.Hour < to && !e.adjustment {
			sum += e.Cost
		}
	}
	return sum
}
