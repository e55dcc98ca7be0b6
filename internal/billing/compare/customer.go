package compare

import (
	"errors"
	"math/big"

	"quotad/internal/billing/rating"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Plan is a compiled version of a plan, or a compiled draft. Compile it once for all customers.
type Plan struct {
	plan     *plans.Plan
	exponent int
	prices   map[string]*rating.Price // by meter
}

// Compile compiles a version of a plan. It returns an error if the plan is invalid.
func Compile(p *plans.Plan) (*Plan, error) {
	exponent, known := plans.Exponent(p.Currency)
	if !known {
		return nil, errors.New("compare: a plan of no known currency")
	}
	read := &Plan{plan: p, exponent: exponent, prices: make(map[string]*rating.Price, len(p.Prices))}
	for _, price := range p.Prices {
		compiled, err := rating.Compile(price, exponent)
		if err != nil {
			return nil, err
		}
		read.prices[price.Meter] = compiled
	}
	return read, nil
}

// Customer contains a customer's data for a comparison.
type Customer struct {
	Periods   calendar.Periods // with the interval of the customer's plan
	Overrides map[string]plans.StoredOverride
	Prices    map[string]plans.Price // the customer's own prices, by meter
	Billed    bool                   // false for an anonymous customer
	InForce   *Plan
	Held      map[string][]Change // by level meter, in ascending order; includes the last change before the compared span
}

// Change is the level that a customer holds of a level meter from At on, µs.
type Change struct{ At, Level int64 }

// heldIn computes the integral, the peak and the last value of a level in the time [from, to), µs, from the
// changes of the level.
func heldIn(changes []Change, from, to int64) rating.Held {
	held, at, level := rating.Held{Integral: new(big.Int)}, from, int64(0)
	hold := func(until int64) {
		held.Integral.Add(held.Integral, new(big.Int).Mul(big.NewInt(level), big.NewInt(until-at)))
		if until > at {
			held.Peak = max(held.Peak, level)
		}
		at = until
	}
	for _, c := range changes {
		if c.At >= to {
			break
		}
		hold(max(c.At, from))
		level = c.Level
	}
	hold(to)
	held.Last = level
	return held
}

// Used is the usage of one meter, with its hours in ascending order. The hours before the compared span fill the
// windows that overlap the start of the span.
type Used struct {
	Meter string
	Hours []Hour
}

// side is the simulation of one plan for one customer.
type side struct {
	plan     *Plan
	customer *Customer
	from, to int64 // the compared span, µs
	refused  Range // refused units
	billed   Range // the billed amount, minor units
	unbilled bool  // whether the amount is too large to be billed
}

// outcome is the number of units that a limit refused, and how the limit was simulated.
type outcome struct {
	meter   string
	limit   string
	how     How
	refused Range
}

// play simulates the customer's usage under the plan's limits, and rates the admitted units.
func (s *side) play(usage []Used) (outcomes []outcome) {
	var best, worst bill
	for i := range usage {
		u := &usage[i]
		outcomes = append(outcomes, s.meter(u, &best, &worst)...)
	}
	s.refused.order() // refusals at the worst times may leave more quota for later hits
	if s.customer.Billed {
		s.billed = Range{s.price(&worst), s.price(&best)}
		s.billed.order() // because of tiers, more units may cost less
	}
	return outcomes
}

// meter simulates one meter.
func (s *side) meter(u *Used, best, worst *bill) []outcome {
	straight := aligned(&s.customer.Periods, s.from)
	var limits []*limit
	bounded := false
	for _, l := range limitsOf(s.plan.plan, u.Meter, s.customer.Overrides) {
		limits = append(limits, &limit{l, how(l, straight)})
		bounded = bounded || limits[len(limits)-1].how == Bounds
	}
	good := newVariant(limits, s.customer.Periods, false)
	bad := good
	if bounded {
		bad = newVariant(limits, s.customer.Periods, true)
	}
	for i := range u.Hours {
		h := &u.Hours[i]
		counts := h.Start >= s.from && h.Start < s.to
		admitted := good.hour(u.Hours, i, counts)
		least := admitted
		if bounded {
			least = bad.hour(u.Hours, i, counts)
		}
		if !counts {
			continue
		}
		s.refused.Least = model.AddUpTo(s.refused.Least, h.Asked()-admitted)
		s.refused.Most = model.AddUpTo(s.refused.Most, h.Asked()-least)
		period, _ := s.customer.Periods.Period(h.Start)
		best.add(period, u.Meter, admitted)
		worst.add(period, u.Meter, least)
	}
	outcomes := make([]outcome, len(limits))
	for i, l := range limits {
		outcomes[i] = outcome{u.Meter, l.Name, l.how, Range{min(good.refused[i], bad.refused[i]), max(good.refused[i], bad.refused[i])}}
	}
	return outcomes
}

// bill contains the units of each billing period in the compared span, by meter.
type bill struct {
	periods map[int64]map[string]int64 // by the start of the period
}

func (b *bill) add(period int64, meter string, units int64) {
	if b.periods == nil {
		b.periods = make(map[int64]map[string]int64)
	}
	if b.periods[period] == nil {
		b.periods[period] = make(map[string]int64)
	}
	b.periods[period][meter] = model.AddUpTo(b.periods[period][meter], units)
}

// maxPeriods bounds the number of billing periods in one comparison. It exceeds the number of days in a
// comparison.
const maxPeriods = 100

// price returns the amount that the plan bills for the compared span. Each billing period is prorated to its
// part in the span.
func (s *side) price(b *bill) (total int64) {
	at := s.from
	base := rating.Span{End: at}
	for range maxPeriods {
		start, end := s.customer.Periods.Period(at)
		full, fullEnd := s.customer.Periods.Full(at)
		span := rating.Span{Start: full, End: fullEnd, From: max(full, start, s.from), To: min(fullEnd, end, s.to)}
		if at >= base.End || at == s.customer.Periods.From { // a base price begins here
			base.Start, base.End = s.customer.Periods.Whole(at, max(1, s.plan.plan.BaseEvery))
		}
		if base.From, base.To = span.From, span.To; span.From < span.To {
			total = model.AddUpTo(total, s.pricePeriod(b.periods[start], span, base))
		}
		if end >= s.to || end <= at {
			break
		}
		at = end
	}
	return total
}

// pricePeriod returns the amount of one period: base and usage, raised to the plan's minimum. base is the
// period's part of the time that the base price covers.
func (s *side) pricePeriod(units map[string]int64, span, base rating.Span) int64 {
	p := s.plan.plan
	amount := base.Money(p.BasePriceMinor)
	add := func(price *rating.Price, meter string) {
		line, err := price.Rate(units[meter], span)
		if price.LevelBy() != "" {
			held := heldIn(s.customer.Held[meter], span.From, span.To)
			line, err = price.RateLevel(price.Level(held, span.To-span.From), span)
		}
		if err != nil {
			s.unbilled = true
			return
		}
		amount = model.AddUpTo(amount, line.AmountMinor)
	}
	for _, price := range p.Prices {
		if _, own := s.customer.Prices[price.Meter]; !own {
			add(s.plan.prices[price.Meter], price.Meter)
		}
	}
	for meter, price := range s.customer.Prices {
		if own, err := rating.Compile(price, s.plan.exponent); err == nil {
			add(own, meter)
		}
	}
	amount = model.AddUpTo(amount, rating.Lift(amount, span.Money(p.MinimumMinor)))
	s.unbilled = s.unbilled || amount > rating.MaxMinor
	return amount
}
