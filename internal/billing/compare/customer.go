package compare

import (
	"errors"
	"math/big"

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
	Held      map[string][]Change // of level meters, ascending, with the last change before what is compared
}

// Change is what is held of a level meter from At on, µs.
type Change struct{ At, Level int64 }

// heldIn is what changes make of the time [from, to), µs.
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
	base := rating.Span{End: at}
	for range maxPeriods {
		start, end := s.customer.Periods.Period(at)
		full, fullEnd := s.customer.Periods.Full(at)
		span := rating.Span{Start: full, End: fullEnd, From: max(full, start, s.from), To: min(fullEnd, end, s.to)}
		if at >= base.End || at == s.customer.Periods.From { // the base price of so many periods, from here on
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

// pricePeriod is what one period costs: base and usage, lifted to the plan's minimum. base is its part of
// the time that the base price is for.
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
