package model

import (
	"math"
	"math/bits"
	"slices"
)

// Rate is a limit that a token bucket is refilled by from an instant on, µs by the customer's clock.
type Rate struct{ From, Limit int64 }

// Always is the From of a first rate: nothing is known from before it.
const Always int64 = math.MinInt64

// mostEdits is how many edits of a limit are remembered with their instants.
const mostEdits = 8

// Rates are what a limit was over time, each until the next one. They ascend by their instants, and
// the first counts from Always. They never change.
type Rates []Rate

// Then is the rates with a further one from an instant on. A rate that was to count from then or
// later counts no more: a test clock may be set back before an edit.
func (r Rates) Then(from, limit int64) Rates {
	r = r.Before(from)
	switch last := len(r) - 1; {
	case last < 0:
		return Rates{{Always, limit}}
	case r[last].Limit == limit:
		return r
	}
	return append(slices.Clip(r), Rate{from, limit})
}

// Latest is what is remembered of the rates. Of more edits the oldest are forgotten. Before the others
// the slowest of the forgotten rates counts, so that no bucket gets more than it should. It comes after
// Before: an edit that is yet to come, as the end of an override, must not have one forgotten that counts.
func (r Rates) Latest() Rates {
	forgotten := len(r) - 1 - mostEdits
	if forgotten <= 0 {
		return r
	}
	kept := slices.Clone(r[forgotten:])
	kept[0].From = Always
	for _, rate := range r[:forgotten] {
		kept[0].Limit = min(kept[0].Limit, rate.Limit)
	}
	return kept
}

// Before is what counted before an instant.
func (r Rates) Before(at int64) Rates {
	n := len(r)
	for n > 0 && r[n-1].From >= at {
		n--
	}
	return r[:n]
}

// At is the limit at an instant. There must be a rate.
func (r Rates) At(at int64) int64 {
	for i := len(r) - 1; i > 0; i-- {
		if r[i].From <= at {
			return r[i].Limit
		}
	}
	return r[0].Limit
}

// WithRates is the limit with what it was before. The last rate is its own, and the limit is as it
// is where there is no other. Only a token bucket asks for it.
func (l *Limit) WithRates(r Rates) *Limit {
	r = r.Latest()
	last := len(r) - 1
	if !l.Algorithm.Refills() || last < 1 || r[last].Limit != l.Limit {
		return l
	}
	own := *l
	own.rates, own.edited = r, r[last].From
	return &own
}

// Rates are what the limit was, up to itself; nil where it always was the same.
func (l *Limit) Rates() Rates { return l.rates }

// Ending is the limit as an override has it that ends at an instant, µs: no wait is longer.
func (l *Limit) Ending(at int64) *Limit {
	own := *l
	own.ends = at
	return &own
}

// convert takes off a stored level what came back between two instants at the rates that the limit
// had, and returns the rest in the parts that an aux says, see ratedBy, rounded up. What 64 bits do
// not hold is math.MaxInt64. All rates share the window, so it counts in parts of 1/Window, of which
// a limit of n units brings back n each µs. 128 bits hold them: a level has 63 bits, a window 50, an
// instant 63 and a limit 50.
func (l *Limit) convert(stored bucket, since, at, aux int64) int64 {
	if stored.aux >= 0 {
		panic("quota: a token bucket of no limit")
	}
	high, low := bits.Mul64(uint64(stored.level), uint64(common(-1-stored.aux, l.Window)))
	for to, i := at, len(l.rates)-1; to > since; i-- {
		limit, from := l.Limit, since
		if i >= 0 {
			limit, from = l.rates[i].Limit, max(since, l.rates[i].From)
		}
		if from >= to {
			continue
		}
		backHigh, backLow := bits.Mul64(uint64(limit), uint64(to-from))
		var borrow uint64
		low, borrow = bits.Sub64(low, backLow, 0)
		if high, borrow = bits.Sub64(high, backHigh, borrow); borrow > 0 {
			return 0
		}
		to = from
	}
	part := uint64(common(-1-aux, l.Window))
	if high >= part {
		return math.MaxInt64
	}
	parts, rest := bits.Div64(high, low, part)
	switch {
	case parts >= math.MaxInt64:
		return math.MaxInt64
	case rest > 0:
		parts++
	}
	return int64(parts)
}
