package compare

import (
	"errors"

	"quotad/internal/billing/rating"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Plan is a version of a plan, or a draft, made ready: Compile it once for all customers.
type Plan struct {
	plan     *plans.Plan
	exponent int
	prices   map[string]*rating.Price // by meter
}

// Compile reads a version of a plan. The error is that of a plan that nobody may have.
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

// Customer is what a comparison has to know of a customer.
type Customer struct {
	Periods   calendar.Periods // with the interval of its plan
	Overrides map[string]plans.StoredOverride
	Prices    map[string]plans.Price // of its own, by meter
	Billed    bool                   // false of an anonymous one
	InForce   *Plan
}

// Used is the usage of one meter, its hours ascending. Those before the span that is compared fill
// the windows that reach into it.
type Used struct {
	Meter string
	Hours []Hour
}

// side is one plan played for one customer.
type side struct {
	plan     *Plan
	customer *Customer
	from, to int64 // what is compared, µs
	refused  Range // units
	billed   Range // minor units
	unbilled bool  // the amount would be too large to be billed
}

// outcome is what a limit refused, and how it was played.
type outcome struct {
	meter   string
	limit   string
	how     How
	refused Range
}

// play plays the customer's usage through the plan's limits, and prices what is admitted.
func (s *side) play(usage []Used) (outcomes []outcome) {
	var best, worst bill
	for i := range usage {
		u := &usage[i]
		outcomes = append(outcomes, s.meter(u, &best, &worst)...)
	}
	s.refused.order() // what comes at the worst of times may leave more room for later
	if s.customer.Billed {
		s.billed = Range{s.price(&worst), s.price(&best)}
		s.billed.order() // a tier may make more units cheaper
	}
	return outcomes
}

// meter plays one meter.
func (s *side) meter(u *Used, best, worst *bill) []outcome {
	straight := aligned(&s.customer.Periods, s.from)
	var limits []*limit
	bounded := false
	for _, l := range limitsOf(s.plan.plan, u.Meter, s.customer.Overrides) {
		limits = append(limits, &limit{l, how(l, straight)})
		bounded = bounded || limits[len(limits)-1].how == Bounds
	}
	good := newCourse(limits, s.customer.Periods, false)
	bad := good
	if bounded {
		bad = newCourse(limits, s.customer.Periods, true)
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

// bill has the units of each billing period that the comparison touches, by meter.
type bill struct {
	periods map[int64]map[string]int64 // by their starts
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

// maxPeriods bounds the billing periods of one comparison: more than days in it.
const maxPeriods = 100

// price is what the plan bills for the span that is compared: of each billing period the part
// that lies in it, cut as periods are cut.
func (s *side) price(b *bill) (total int64) {
	at := s.from
	for range maxPeriods {
		start, end := s.customer.Periods.Period(at)
		full, fullEnd := s.customer.Periods.Full(at)
		span := rating.Span{Start: full, End: fullEnd, From: max(full, start, s.from), To: min(fullEnd, end, s.to)}
		if span.From < span.To {
			total = model.AddUpTo(total, s.pricePeriod(b.periods[start], span))
		}
		if end >= s.to || end <= at {
			break
		}
		at = end
	}
	return total
}

// pricePeriod is what one period costs: base and usage, lifted to the plan's minimum.
func (s *side) pricePeriod(units map[string]int64, span rating.Span) int64 {
	p := s.plan.plan
	amount := span.Money(p.BasePriceMinor)
	add := func(price *rating.Price, meter string) {
		line, err := price.Rate(units[meter], span)
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
