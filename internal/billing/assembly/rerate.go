package assembly

import (
	"fmt"
	"slices"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// Difference reports that a line does not equal the line computed from its period's terms. Line is 0 if the
// line is missing.
type Difference struct {
	Line            int
	Meter           string // the meter of a usage line
	Detail          string
	Expected, Found int64 // amounts in minor units, or both 0
}

// Rerate rates the lines of a closed period's own invoice again, from their quantities: base, usage, minimum
// and unused. It skips lines that other terms price: corrections, charges, the base in advance of the next
// period (see AdvanceBase), and lines replaced by a cut at the start.
func (t *Terms) Rerate(lines []billing.Line) []Difference {
	r := rerating{t: t}
	r.usage(lines)
	r.base(lines)
	r.minimum(lines)
	r.unused(lines)
	return r.all
}

type rerating struct {
	t     *Terms
	rated int64 // sum of the usage lines
	all   []Difference
}

func (r *rerating) add(d Difference) { r.all = append(r.all, d) }

// usage checks that each price has a line, in the order of the prices.
func (r *rerating) usage(lines []billing.Line) {
	meters := r.t.Meters()
	for i := range lines {
		l := &lines[i]
		if l.Kind != billing.LineUsage {
			continue
		}
		r.rated += l.AmountMinor
		at := slices.Index(meters, l.Meter)
		if at < 0 {
			r.add(Difference{Line: l.N, Meter: l.Meter, Detail: "The period has no price of the meter, or more than one line of it.", Found: l.AmountMinor})
			continue
		}
		meters = slices.Delete(meters, at, at+1)
		again, err := r.again(l)
		switch {
		case err != nil:
			r.add(Difference{Line: l.N, Meter: l.Meter, Detail: "The quantity cannot be rated: " + err.Error(), Found: l.AmountMinor})
		case again.AmountMinor != l.AmountMinor:
			r.add(Difference{l.N, l.Meter, fmt.Sprintf("%d units cost another amount by the prices of the period.", l.Quantity), again.AmountMinor, l.AmountMinor})
		case again.Included != l.Included:
			r.add(Difference{l.N, l.Meter, "Another number of units is included by the prices of the period.", again.Included, l.Included})
		case again.From != l.From || again.To != l.To || again.PlanVersion != l.PlanVersion:
			r.add(Difference{Line: l.N, Meter: l.Meter, Detail: "The line's time or plan version is not that of the period."})
		case again.Quantity != l.Quantity || again.Level != l.Level:
			r.add(Difference{Line: l.N, Meter: l.Meter, Detail: "The line's quantity is not the level that it says, or the price is of another level."})
		case !again.PricedAs(l):
			r.add(Difference{Line: l.N, Meter: l.Meter, Detail: "The line says another price than the period has."})
		}
	}
	for _, meter := range meters {
		r.add(Difference{Meter: meter, Detail: "The period has a price of the meter, but the invoice has no usage line."})
	}
}

// again computes a line again from its quantity and the period's terms.
func (r *rerating) again(l *billing.Line) (line billing.Line, err error) {
	meter := plans.Meter{Key: l.Meter}
	if r.t.LevelBy(l.Meter) == "" {
		line, _, err = r.t.UsageLine(meter, l.Quantity)
		return line, err
	}
	level, err := rating.ReadLevel(l.Level.Exact)
	if err != nil {
		return line, err
	}
	line, _, err = r.t.LevelLine(meter, level)
	return line, err
}

// base checks that the whole base in arrears is charged. For a base in advance, the invoice may contain only
// the rest that earlier invoices did not charge.
func (r *rerating) base(lines []billing.Line) {
	p := &r.t.Period
	end := p.BaseOf().End
	there := false
	for i := range lines {
		l := &lines[i]
		if l.Kind != billing.LineBase || l.From >= p.End && !p.BaseGoesOn() {
			continue
		}
		there = true
		if want := r.t.base(l.From, l.To); want != l.AmountMinor {
			r.add(Difference{Line: l.N, Detail: "The base price of this time is another amount.", Expected: want, Found: l.AmountMinor})
		}
		if l.To != end || !r.t.inAdvance() && l.From != p.Start {
			r.add(Difference{Line: l.N, Detail: "The base price is not of the time that it is to be of."})
		}
	}
	if want := r.t.base(p.Start, p.End); !there && !r.t.inAdvance() && want != 0 {
		r.add(Difference{Detail: "The line of the base price is missing.", Expected: want})
	}
}

// minimum checks the minimum line. Its amount must raise base price and usage to the plan's minimum.
func (r *rerating) minimum(lines []billing.Line) {
	want, found, n := rating.Lift(r.t.base(r.t.Period.Start, r.t.Period.End)+r.rated, r.t.minimum()), int64(0), 0
	for i := range lines {
		if l := &lines[i]; l.Kind == billing.LineMinimum {
			found, n = found+l.AmountMinor, l.N
		}
	}
	if want != found {
		r.add(Difference{Line: n, Detail: "Base and usage lack another amount of the plan's minimum.", Expected: want, Found: found})
	}
}

// unused checks that the amount given back does not exceed the cost of the unused time. Credit notes may have
// made the amount smaller.
func (r *rerating) unused(lines []billing.Line) {
	for i := range lines {
		l := &lines[i]
		if l.Kind != billing.LineUnused || l.From != r.t.Period.End || l.PlanVersion != r.t.basePlan().Version {
			continue
		}
		if most := r.t.base(l.From, l.To); l.AmountMinor > 0 || -l.AmountMinor > most {
			r.add(Difference{Line: l.N, Detail: "More is given back than the unused time costs.", Expected: -most, Found: l.AmountMinor})
		}
	}
}
