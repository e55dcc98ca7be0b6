package timeline

import (
	"errors"
	"math"
	"reflect"

	"quotad/internal/billing"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

// MaxAhead is the maximum number of periods that At advances.
const MaxAhead = 1000

// ErrFar reports that more than MaxAhead periods lie between the open period and an instant.
var ErrFar = errors.New("more than 1,000 billing periods lie between the open one and this instant")

// Timeline contains the data that determines a customer's periods. Instants are µs by the customer's clock.
type Timeline struct {
	Periods  calendar.Periods // the boundaries, with the cuts of the account
	Terms    []Terms          // at least one, in order
	Prices   []OwnPrice       // in the order of their changes
	Versions []Version        // all versions of the plans in Terms
	Clock    []int64          // the test clock's settings, oldest first, as change and now in turn; nil for PostgreSQL's time

	StartsAt int64
	TrialEnd *int64
	End      *int64 // the end of billing by ends_at or archiving; no period begins at End or later
	Archived bool   // End is the archiving, which was not known in advance
	Break    *Break
	Known    *Known
}

// Known contains the end that was known when the period beginning at Start began. That end differs from
// today's.
type Known struct{ Start, End int64 }

// Break is the time between two chains, in which usage is free. Billing ended at From and began again at To.
type Break struct{ From, To int64 }

// Terms are a customer's plan and version. They apply to the periods that start at From or later, or after
// At, until later terms apply. From is the next boundary as known at At; an earlier boundary may have been
// added since.
type Terms struct {
	Change         int64
	How            string // a value such as plans.ChangeNow
	From           int64
	At             int64 // start of their limits: From for a scheduled change, else the instant of the write
	PlanID         int32
	Joined, Pinned int // plan versions; if Pinned is 0, the customer follows the plan
}

// OwnPrice is a customer's own price. Like Terms, it applies to the periods that start at From or later, or
// after At. A nil Price restores the plan's price.
type OwnPrice struct {
	Change, From int64
	At           int64
	Meter        string
	Price        *plans.Price
}

// Version is a version of a plan. If All is true, the version applies to all customers of the plan.
type Version struct {
	PlanID            int32
	Number            int
	All               bool
	Change, CreatedAt int64
	BaseEvery         int // the number of intervals that the base price covers; 0 means 1
}

// First returns the first period, which begins at StartsAt. ok is false if billing ends before it begins.
func (t *Timeline) First() (p billing.Period, ok bool) { return t.start(0, t.StartsAt) }

// Resume returns the first period of a chain that begins at the end of the break.
func (t *Timeline) Resume(chain int) (p billing.Period, ok bool) { return t.start(chain, t.Break.To) }

// start returns the first period of a chain.
func (t *Timeline) start(chain int, at int64) (p billing.Period, ok bool) {
	if p, ok = t.from(chain, 0, at); ok {
		p.Base = t.newBase(&p)
	}
	return p, ok
}

// Next returns the period that follows p. ok is false if no period follows.
func (t *Timeline) Next(p *billing.Period) (next billing.Period, ok bool) {
	if t.Break != nil && p.End >= t.Break.From && p.End <= t.Break.To {
		return t.start(p.Chain+1, t.Break.To)
	}
	if next, ok = t.from(p.Chain, p.N+1, p.End); ok {
		next.Base = t.nextBase(p, &next)
	}
	return next, ok
}

// At returns the period that contains an instant: the open period or a later one. ok is false if the instant
// is before the open period, in a break, or after the end of billing. Errors: ErrFar.
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

// Again returns the open period p after a change of its boundaries, terms or trial. The start stays, and the
// end becomes the first boundary after the start. If repriced is true, the new terms apply from the start;
// otherwise the pricing stays. ok is false if billing ends at the start or before.
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
	again.KnownEnd = p.KnownEnd // a base in advance was charged up to there, whatever the new end
	return again, true
}

// OtherPrices reports whether the customer's own prices for a period that begins now differ from those of the
// running period.
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

// known returns the end that was known when a period started. A cut within the period by a change or the
// archiving came later and does not count, even if the period was stored only after the cut.
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

// PricesAt returns the customer's own prices for the period that begins at start, by meter. Without own
// prices, the result is empty, not nil.
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

// version returns the pinned version, if one is set. Otherwise it returns the newer of two versions: the
// version with which the customer joined, and the newest version for all customers that is older than the
// period's start.
//
// On a test clock, a version is older if it was written before the clock reached the start, or before the
// change that cut the period there.
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

// came returns the number of the change since which the test clock has shown an instant or a later one. The
// result is MaxInt64 if the clock shows an earlier instant. The stored history is short, so if all of it is
// later than the instant, its oldest change is returned.
func (t *Timeline) came(at int64) int64 {
	came := int64(math.MaxInt64)
	for i := len(t.Clock) - 2; i >= 0 && t.Clock[i+1] >= at; i -= 2 {
		came = t.Clock[i]
	}
	return came
}
