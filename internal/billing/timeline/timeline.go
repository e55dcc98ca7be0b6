package timeline

import (
	"errors"
	"math"
	"reflect"

	"quotad/internal/billing"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

// MaxAhead bounds how many periods At goes forward.
const MaxAhead = 1000

// ErrFar says that more than MaxAhead periods lie between the open period and an instant.
var ErrFar = errors.New("more than 1,000 billing periods lie between the open one and this instant")

// Timeline is what a customer's periods follow from. Instants are µs by the customer's clock.
type Timeline struct {
	Periods  calendar.Periods // the boundaries; its cuts are those of the account
	Terms    []Terms          // in their order; at least one
	Prices   []OwnPrice       // in the order of their changes
	Versions []Version        // of the plans in Terms
	Clock    []int64          // history of the test clock: change and now of each setting, the oldest first; nil: PostgreSQL's time

	StartsAt int64
	TrialEnd *int64
	End      *int64 // no period begins here or later: ends_at or the archiving
	Archived bool   // End is the archiving, which nobody knew before
	Break    *Break
	Known    *Known
}

// Known says which end was known when the period began that begins at Start. End was another then.
type Known struct{ Start, End int64 }

// Break is a stretch between two chains in which usage is free: billing ended at From, and
// began again at To.
type Break struct{ From, To int64 }

// Terms is what a customer is on. They price the periods that start at From or later, or after
// At, until later terms do. From is the next boundary as it was known at At; another one may have come
// before it since.
type Terms struct {
	Change         int64
	How            string // plans.ChangeNow and so on
	From           int64
	At             int64 // from which on their limits count: for a scheduled change From, else when they were written
	PlanID         int32
	Joined, Pinned int // versions; Pinned 0: it follows the plan
}

// OwnPrice is a price of the customer's own for the periods that start at From or later, or after
// At, as with Terms. A nil Price says that the plan's counts again.
type OwnPrice struct {
	Change, From int64
	At           int64
	Meter        string
	Price        *plans.Price
}

// Version is a version of a plan. All: it was written for all customers of the plan.
type Version struct {
	PlanID            int32
	Number            int
	All               bool
	Change, CreatedAt int64
	BaseEvery         int // intervals that its base price is for; 0 is 1
}

// First returns the first period, which begins at StartsAt. ok is false where billing ends
// before it begins.
func (t *Timeline) First() (p billing.Period, ok bool) { return t.start(0, t.StartsAt) }

// Resume returns the first period of a chain, which begins where the break ends.
func (t *Timeline) Resume(chain int) (p billing.Period, ok bool) { return t.start(chain, t.Break.To) }

// start returns the first period of a chain.
func (t *Timeline) start(chain int, at int64) (p billing.Period, ok bool) {
	if p, ok = t.from(chain, 0, at); ok {
		p.Base = t.newBase(&p)
	}
	return p, ok
}

// Next returns the period that follows p. ok is false where none does.
func (t *Timeline) Next(p *billing.Period) (next billing.Period, ok bool) {
	if t.Break != nil && p.End >= t.Break.From && p.End <= t.Break.To {
		return t.start(p.Chain+1, t.Break.To)
	}
	if next, ok = t.from(p.Chain, p.N+1, p.End); ok {
		next.Base = t.nextBase(p, &next)
	}
	return next, ok
}

// At returns the period that holds an instant: open, or one that follows it. ok is false
// where none does: the instant is before open, in a break, or after the end of billing. Errors:
// ErrFar.
func (t *Timeline) At(open billing.Period, at int64) (p billing.Period, ok bool, err error) {
	p = open
	for range MaxAhead + 1 {
		if at < p.Start {
			return billing.Period{}, false, nil
		}
		if at < p.End {
			return p, true, nil
		}
		if p, ok = t.Next(&p); !ok {
			return billing.Period{}, false, nil
		}
	}
	return billing.Period{}, false, ErrFar
}

// Again returns the open period p as it is after a change of its boundaries, terms or trial.
// Its start stays. Its end is the first boundary after it. repriced says that the terms count
// from its very start; else what prices it stays. ok is false where billing ends at its start
// or before.
func (t *Timeline) Again(p *billing.Period, repriced bool) (again billing.Period, ok bool) {
	again, ok = t.from(p.Chain, p.N, p.Start)
	if !ok {
		return again, false
	}
	if repriced {
		again.Base = t.baseAgain(p, &again)
		return again, true
	}
	again.Base = p.Base
	again.PlanID, again.Version, again.Prices = p.PlanID, p.Version, p.Prices
	again.FullStart, again.FullEnd = p.FullStart, p.FullEnd
	again.KnownEnd = p.KnownEnd // up to there a base in advance was charged, wherever it ends
	return again, true
}

// OtherPrices reports whether a period that began now would have other prices of the customer's
// own than the one that runs.
func (t *Timeline) OtherPrices(running *billing.Period) bool {
	prices := t.PricesAt(math.MaxInt64)
	return len(prices)+len(running.Prices) > 0 && !reflect.DeepEqual(prices, running.Prices)
}

// from returns the period that begins at start.
func (t *Timeline) from(chain, n int, start int64) (p billing.Period, ok bool) {
	if t.End != nil && start >= *t.End {
		return billing.Period{}, false
	}
	_, end := t.Periods.Period(start)
	if t.End != nil {
		end = min(end, *t.End)
	}
	p = billing.Period{Chain: chain, N: n, Start: start, End: end}
	p.FullStart, p.FullEnd = t.Periods.Full(start)
	p.KnownEnd = t.known(start, p.FullEnd)
	p.Trial = t.TrialEnd != nil && end <= *t.TrialEnd
	terms := t.terms(start)
	p.PlanID, p.Version, p.Prices = terms.PlanID, t.version(terms, start), t.PricesAt(start)
	return p, true
}

// known is the end that is known when a period starts. What a change or the archiving cuts
// within the period comes later, even if the period is written down only after that.
func (t *Timeline) known(start, full int64) int64 {
	if t.Known != nil && t.Known.Start == start {
		return min(full, t.Known.End)
	}
	ends := []*int64{t.TrialEnd}
	if !t.Archived {
		ends = append(ends, t.End)
	}
	if t.Break != nil {
		ends = append(ends, &t.Break.From, &t.Break.To)
	}
	known := full
	for _, at := range ends {
		if at != nil && *at > start {
			known = min(known, *at)
		}
	}
	return known
}

// terms are those of the newest change that counts for the period that begins at start.
func (t *Timeline) terms(start int64) (found Terms) {
	for _, terms := range t.Terms {
		if (terms.From <= start || terms.At < start) && terms.Change >= found.Change {
			found = terms
		}
	}
	return found
}

// PricesAt are the customer's own prices of the period that begins at start, by meter. It is
// empty, not nil, where there are none.
func (t *Timeline) PricesAt(start int64) map[string]plans.Price {
	prices, changes := make(map[string]plans.Price), make(map[string]int64)
	for _, own := range t.Prices {
		if own.From > start && own.At >= start || own.Change < changes[own.Meter] {
			continue
		}
		changes[own.Meter] = own.Change
		delete(prices, own.Meter)
		if own.Price != nil {
			prices[own.Meter] = *own.Price
		}
	}
	return prices
}

// version is the pinned one. Without it, it is the newest for all that is older than the
// period's start, or the one with which the customer joined if that is newer. On a test clock a
// version is older if it was written before the clock came to the start, or before the change
// that cut the period there.
func (t *Timeline) version(terms Terms, start int64) int {
	if terms.Pinned != 0 {
		return terms.Pinned
	}
	number, came := terms.Joined, t.came(start)
	if terms.From == start {
		came = max(came, terms.Change)
	}
	for _, v := range t.Versions {
		older := v.CreatedAt < start
		if t.Clock != nil {
			older = v.Change < came
		}
		if v.PlanID == terms.PlanID && v.All && older {
			number = max(number, v.Number)
		}
	}
	return number
}

// came is the change at which the test clock came to show an instant or a later one, and has
// since: MaxInt64 where it shows an earlier one. The history is short. Where all of it is
// later, its oldest change counts.
func (t *Timeline) came(at int64) int64 {
	came := int64(math.MaxInt64)
	for i := len(t.Clock) - 2; i >= 0 && t.Clock[i+1] >= at; i -= 2 {
		came = t.Clock[i]
	}
	return came
}
