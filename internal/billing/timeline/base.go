package timeline

import (
	"quotad/internal/billing"
	"quotad/internal/plans"
)

// A base price may cover several intervals. Then each period in them keeps the base price of the period
// before. A new base price begins with a chain, after the last interval, and with a change of plan, anchor,
// timezone or interval. It also begins with every other change that is to apply at once.

// Close sets the end of a period's base price, as known at the end of the period. next is the following
// period, or nil if no period follows.
func (t *Timeline) Close(p, next *billing.Period) {
	if p.Base == nil {
		return
	}
	b := *p.Base
	if b.End = p.End; next != nil && next.Chain == p.Chain && next.Base != nil && next.Base.N <= p.N {
		b.End = t.baseEnd(&b, p.End)
	}
	p.Base = &b
}

// newBase returns the base price that begins with a period, or nil if it covers only one interval.
func (t *Timeline) newBase(p *billing.Period) *billing.Base {
	every := t.every(p)
	if every <= 1 {
		return nil
	}
	b := p.BaseOf()
	b.FullStart, b.FullEnd = t.Periods.Whole(p.Start, every)
	b.To, b.End = t.known(p.Start, b.FullEnd), 0
	return &b
}

func (t *Timeline) every(p *billing.Period) int {
	for _, v := range t.Versions {
		if v.PlanID == p.PlanID && v.Number == p.Version {
			return v.BaseEvery
		}
	}
	return 1
}

// nextBase returns the base price of the period that follows p.
func (t *Timeline) nextBase(p, next *billing.Period) *billing.Base {
	odd := p.End != p.FullEnd && (t.TrialEnd == nil || *t.TrialEnd != p.End)
	if !long(p) || !t.goesOn(p.Base, next, odd) {
		return t.newBase(next)
	}
	if p.Trial {
		return t.charge(*p.Base, next)
	}
	b := *p.Base
	b.To, b.End, b.Over = max(b.To, t.baseEnd(&b, p.End)), 0, nil
	return &b
}

// long reports whether the base price of a period covers more than one interval.
func long(p *billing.Period) bool {
	return p.Base != nil && (p.Base.FullStart < p.FullStart || p.Base.FullEnd > p.FullEnd)
}

// charge makes a base price begin with the period p for charging, although its intervals began earlier in a
// trial.
func (t *Timeline) charge(b billing.Base, p *billing.Period) *billing.Base {
	b.N, b.Start, b.To, b.End = p.N, p.Start, t.known(p.Start, b.FullEnd), 0
	b.Late, b.Over = false, nil
	return &b
}

// baseAgain returns the base price of the open period p after a change of terms from the period's start.
// again is p with the new terms. The amounts that invoices charged for the former base price are given back.
func (t *Timeline) baseAgain(p, again *billing.Period) *billing.Base {
	if p.Base == nil {
		return t.newBase(again)
	}
	before := p.Base.Over
	switch {
	case before != nil:
	case p.Base.N < p.N: // the base began before the period
		before = p.Base
	case p.Base.FullStart < p.FullStart && t.goesOn(p.Base, again, false): // its intervals began before, in a trial
		return t.charge(*p.Base, again)
	default:
		return t.newBase(again)
	}
	if t.goesOn(before, again, false) {
		b := *before
		return &b
	}
	b := t.newBase(again)
	if b == nil {
		own := again.BaseOf()
		own.End = 0
		b = &own
	}
	b.Late, b.Over = true, before
	return b
}

// goesOn reports whether a base price continues in the period p. If odd is true, any change at the start of p
// ends the base price, because only a change can have ended the period before.
func (t *Timeline) goesOn(b *billing.Base, p *billing.Period, odd bool) bool {
	return p.PlanID == b.PlanID && p.Start < b.FullEnd && t.Periods.Same(p.Start-1, p.Start) && !t.atOnce(p.Start, odd)
}

// atOnce reports whether a change that is to apply at once took effect at a period's start. If odd is true,
// any change at the start counts.
func (t *Timeline) atOnce(start int64, odd bool) bool {
	for _, terms := range t.Terms {
		if terms.From == start && (odd || terms.At >= start && !plans.WasScheduled(terms.How)) {
			return true
		}
	}
	return false
}

// baseEnd returns the end of a base price that continues after an instant, as far as it is known.
func (t *Timeline) baseEnd(b *billing.Base, after int64) int64 {
	end := b.FullEnd
	if t.End != nil && *t.End > after {
		end = min(end, *t.End)
	}
	if t.Break != nil && t.Break.From > after {
		end = min(end, t.Break.From)
	}
	return end
}
