package model

import (
	"math"
	"math/bits"
	"slices"
)

// Rate is a limit at which a token bucket is refilled from an instant on, µs by the customer's clock.
type Rate struct{ From, Limit int64 }

// Always is the From of a first rate, because no earlier rate is known.
const Always int64 = math.MinInt64

// mostEdits is the number of edits of a limit that are remembered with their instants.
const mostEdits = 8

// Rates contains the values of a limit over time. Each rate counts until the next rate. The rates are in ascending
// order of their instants, and the first rate counts from Always. Rates never change.
type Rates []Rate

// Then returns the rates with a further rate from an instant on. Rates from that instant or later are removed,
// because a test clock may have been set back before an edit.
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

// Latest returns the rates that are remembered. If there were more edits, the oldest are forgotten. For the time
// before the remembered rates, the slowest of the forgotten rates counts, so that no bucket is replenished too
// fast. Call Before first, because a future edit, such as the end of an override, must not displace a rate that
// counts.
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

// Before returns the rates that counted before an instant.
func (r Rates) Before(at int64) Rates {
	n := len(r)
	for n > 0 && r[n-1].From >= at {
		n--
	}
	return r[:n]
}

// At returns the limit at an instant. There must be a rate.
func (r Rates) At(at int64) int64 {
	for i := len(r) - 1; i > 0; i-- {
		if r[i].From <= at {
			return r[i].Limit
		}
	}
	return r[0].Limit
}

// WithRates returns the limit with its earlier rates. The last rate is the limit's own rate. The result is the
// unchanged limit if there is no other rate. Only token buckets use rates.
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

// Rates returns the values of the limit over time, up to the present value, or nil if the limit never changed.
func (l *Limit) Rates() Rates { return l.rates }

// Ending returns the limit as part of an override that ends at an instant, µs. No wait is longer than the time to
// that end.
func (l *Limit) Ending(at int64) *Limit {
	own := *l
	own.ends = at
	return &own
}

// convert subtracts the units that were replenished between two instants, at the rates of the limit, from a stored
// level. It returns the rest in the parts that aux specifies (see ratedBy), rounded up, or math.MaxInt64 if 64
// bits cannot represent the rest.
//
// All rates share the window, so convert counts in parts of 1/Window. At a limit of n units, n parts are
// replenished each µs. 128 bits suffice, because a level has 63 bits, a window 50, an instant 63 and a limit 50.
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
