package plans

import (
	"cmp"
	"math"
	"slices"

	"quotad/internal/quota/model"
)

// The types below describe the refill rates of a customer's token buckets over time. Rates change with
// plan versions, and with overrides and changes of plan or pin, see OwnRates. All instants are µs by the
// customer's clock.

// Edition contains the limits of a plan version's token buckets, keyed by limit name.
type Edition struct {
	Version int
	All     bool  // the version was written for all customers of the plan
	Change  int64 // change number of the version
	At      int64 // instant of the write, by PostgreSQL's time
	Limits  map[string]int64
}

// ClockHistory lists the changes that set a test clock, the oldest first, as pairs of change number and
// instant. A nil history means PostgreSQL's time.
type ClockHistory []int64

// Showed returns the instant from which the values written by a change apply. That is the instant that
// the clock showed at the change, or the lowest instant to which the clock was set back later. If the
// change is older than the history, known is false, and Showed returns the lowest instant of the history.
func (h ClockHistory) Showed(change int64) (at int64, known bool) {
	for i := 0; i+1 < len(h) && h[i] < change; i += 2 {
		at, known = h[i+1], true
	}
	if !known && len(h) > 0 {
		at = h[1]
	}
	return h.lowered(at, change), known
}

// lowered returns the lower of two instants: at, and the lowest instant to which the clock was set after
// the change.
func (h ClockHistory) lowered(at, change int64) int64 {
	for i := 0; i+1 < len(h); i += 2 {
		if h[i] > change {
			at = min(at, h[i+1])
		}
	}
	return at
}

// Reached returns the number of the first change above after that set the clock to the instant at or
// later. Reached returns 0 if the history contains no such change.
func (h ClockHistory) Reached(at, after int64) (change int64) {
	for i := 0; i+1 < len(h); i += 2 {
		if h[i] > after && h[i+1] >= at {
			return h[i]
		}
	}
	return 0
}

// Counts returns the number of the change from which a scheduled change of plan applies. The change
// numbered after scheduled the plan for the instant at. On a test clock, Counts returns the number of the
// change that set the clock to at or later, or math.MaxInt64 if there is none yet. On PostgreSQL's time,
// the instant alone decides, so Counts returns after.
func (h ClockHistory) Counts(at, after int64) (change int64) {
	if h == nil {
		return after
	}
	return cmp.Or(h.Reached(at, after), math.MaxInt64)
}

// PlanRates returns the rates of a limit through the versions of a customer's plan, up to the version in
// force. The versions that count are the version joined and each later version that was written for all
// customers. If pinned is not 0, the pinned version alone counts. If the test clock's history begins
// after a version was written, the slowest rate that may have applied is used.
func PlanRates(editions []Edition, joined, pinned int, limit string, clock ClockHistory) (rates model.Rates) {
	for i := range editions {
		e := &editions[i]
		counts := e.Version == joined || e.Version > joined && e.All
		if pinned != 0 {
			counts = e.Version == pinned
		}
		n, is := e.Limits[limit]
		if !counts || !is {
			continue
		}
		at, known := e.At, true
		if clock != nil {
			at, known = clock.Showed(e.Change)
		}
		if !known && len(rates) > 0 { // the clock's history begins later
			rates = model.Rates(nil).Then(model.Always, min(n, rates[0].Limit))
		}
		rates = rates.Then(at, n).Latest()
	}
	return rates
}

// OwnRates contains the past rates of one of a customer's limits, and the instant from which the plan's
// rates apply again. Overrides and changes of plan and pin write OwnRates.
type OwnRates struct {
	Change int64   `json:"change"` // number of the change that wrote these rates
	At     int64   `json:"at"`     // instant of that change
	Rates  []int64 `json:"rates"`  // pairs of instant and limit, see PairsOf
	// Until is the instant from which the plan's rates apply: At, or the end of the override that was
	// written then. Until is nil if another change must decide.
	Until *int64 `json:"until"`
}

// RatesOver returns the rates of a limit over time: the customer's own rates, followed by the plan's
// rates. If an override ends, the result includes the rate from its end on. The result contains all
// rates, even if they are more than buckets remember. own is nil if the customer had no rates of its own.
func (own *OwnRates) RatesOver(plan model.Rates, clock ClockHistory) model.Rates {
	if own == nil {
		return plan
	}
	at := clock.lowered(own.At, own.Change)
	var all model.Rates
	for i := 0; i+1 < len(own.Rates); i += 2 {
		all = all.Then(min(own.Rates[i], at), own.Rates[i+1])
	}
	if own.Until == nil || len(plan) == 0 {
		return all
	}
	until := *own.Until
	if until <= own.At {
		until = at
	}
	all = all.Then(until, plan.At(until))
	for _, r := range plan {
		if r.From > until {
			all = all.Then(r.From, r.Limit)
		}
	}
	return all
}

// ChangedRates returns the own rates of a limit after another plan or pin, or an override, takes effect
// at an instant. change is the number of that change, was contains the rates until then, and plan
// contains the plan's rates. o is the override that applies from then on, or nil. The result is nil for a
// limit that did not exist before. plain is true if the plan's rates alone give the same result.
func ChangedRates(change, at int64, was, plan model.Rates, o *StoredOverride) (own *OwnRates, plain bool) {
	until := &at
	if o != nil {
		was, until = was.Then(at, o.Limit).Latest(), o.ExpiresAt
	}
	switch {
	case o == nil && slices.Equal(was, plan.Before(at)):
		return nil, true
	case len(was) == 0:
		return nil, false
	}
	return &OwnRates{Change: change, At: at, Rates: PairsOf(was), Until: until}, false
}

// PairsOf returns rates in their stored form, in which each instant is followed by its limit.
func PairsOf(r model.Rates) (pairs []int64) {
	for i := range r {
		pairs = append(pairs, r[i].From, r[i].Limit)
	}
	return pairs
}
