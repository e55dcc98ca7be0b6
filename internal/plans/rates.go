package plans

import (
	"cmp"
	"math"
	"slices"

	"quotad/internal/quota/model"
)

// What a customer's token buckets were refilled by over time: by the versions of its plan, and by
// overrides and changes of its plan or pin, see OwnRates. All instants are µs by the customer's
// clock.

// Edition is what a plan version made of the limits of the plan's token buckets, by their names.
type Edition struct {
	Version int
	All     bool  // written for all customers
	Change  int64 // its number
	At      int64 // when it was written, of PostgreSQL's time
	Limits  map[string]int64
}

// ClockHistory is for each change that set a test clock the change's number and the instant that
// was set, the oldest first. Nil is PostgreSQL's time.
type ClockHistory []int64

// Showed is what the clock showed at a change, or the lowest instant that it was set back to later:
// from there on counts what the change wrote. known is false of a change before the history: then
// it is the lowest instant of the history.
func (h ClockHistory) Showed(change int64) (at int64, known bool) {
	for i := 0; i+1 < len(h) && h[i] < change; i += 2 {
		at, known = h[i+1], true
	}
	if !known && len(h) > 0 {
		at = h[1]
	}
	return h.lowered(at, change), known
}

// lowered is an instant, or the lowest one that the clock was set to after a change, if that is
// lower.
func (h ClockHistory) lowered(at, change int64) int64 {
	for i := 0; i+1 < len(h); i += 2 {
		if h[i] > change {
			at = min(at, h[i+1])
		}
	}
	return at
}

// Reached is the first change after another one at which the clock showed an instant or a later one, as
// far as the history tells; 0: it has not.
func (h ClockHistory) Reached(at, after int64) (change int64) {
	for i := 0; i+1 < len(h); i += 2 {
		if h[i] > after && h[i+1] >= at {
			return h[i]
		}
	}
	return 0
}

// Counts is the number of the change from which on a change of plan counts that the change after scheduled
// for an instant: the one at which the clock showed the instant, or math.MaxInt64 while it has not. By
// PostgreSQL's time the instant alone decides, and the number is after.
func (h ClockHistory) Counts(at, after int64) (change int64) {
	if h == nil {
		return after
	}
	return cmp.Or(h.Reached(at, after), math.MaxInt64)
}

// PlanRates is what a limit was by the editions of a customer's plan, up to the one in force. The
// customer joined at a version, and has each later one that was written for all; or it has a pinned
// one alone (0: none). Where the test clock's history does not reach back to an edition, the slowest
// rate that may have counted does.
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

// OwnRates is what one of a customer's limits was because of something of the customer's own. It is
// written by overrides, and by changes of plan and pin. It says how the limit came to be what it
// was then, and when the plan counts again.
type OwnRates struct {
	Change int64   `json:"change"` // that wrote it
	At     int64   `json:"at"`     // when that was
	Rates  []int64 `json:"rates"`  // see PairsOf
	// Until is when the plan counts again: At, or when the override that was written then ends;
	// nil: when another change says so.
	Until *int64 `json:"until"`
}

// RatesOver is what a limit was over time, own rates and the plan's after them, and what it is from the end of
// an override on. All of that is in it, also more than is remembered. own is nil where the customer had
// nothing of its own.
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

// ChangedRates are the own rates of a limit that something of the customer's own changes at an instant:
// another plan or pin, or an override. change is the number of that, was what the limit was until then,
// and plan what the plan makes of it. o is the override that counts from then on; nil: none. Nothing is
// kept (nil) of a limit that was not there before. plain: the plan alone says the same.
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

// PairsOf are rates as they are stored: instant and limit, one after the other.
func PairsOf(r model.Rates) (pairs []int64) {
	for i := range r {
		pairs = append(pairs, r[i].From, r[i].Limit)
	}
	return pairs
}
