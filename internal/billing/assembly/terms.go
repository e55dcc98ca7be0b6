package assembly

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// Plan is one version of a plan with its prices read: Compile it once and keep it. It is not
// changed, so any number of goroutines may use it.
type Plan struct {
	Key      string
	Version  int
	Document *plans.PlanInput
	exponent int
	prices   map[string]*rating.Price // by meter
}

// Compile reads a version of a plan. document must not be changed afterwards. The error is that
// of a document that no plan may have.
func Compile(key string, version int, document *plans.PlanInput) (*Plan, error) {
	exponent, ok := plans.Exponent(document.Currency)
	if !ok {
		return nil, fmt.Errorf("plan %s, version %d: currency %q", key, version, document.Currency)
	}
	p := &Plan{Key: key, Version: version, Document: document, exponent: exponent, prices: make(map[string]*rating.Price, len(document.Prices))}
	for _, price := range document.Prices {
		read, err := rating.Compile(price, exponent)
		if err != nil {
			return nil, fmt.Errorf("plan %s, version %d, price of %s: %w", key, version, price.Meter, err)
		}
		p.prices[price.Meter] = read
	}
	return p, nil
}

// Terms are a period and what prices it: the version Period.Version of plan Period.PlanID, and
// Period.Prices of the customer's own.
type Terms struct {
	Period billing.Period
	Plan   *Plan
}

// Meters are the meters that have a price in the period, in the order of its usage lines: as in
// the plan, and after them those that only the customer's own prices name, by key.
func (t *Terms) Meters() []string {
	meters := make([]string, 0, len(t.Plan.Document.Prices)+len(t.Period.Prices))
	for i := range t.Plan.Document.Prices {
		meters = append(meters, t.Plan.Document.Prices[i].Meter)
	}
	for _, meter := range slices.Sorted(maps.Keys(t.Period.Prices)) {
		if t.Plan.prices[meter] == nil {
			meters = append(meters, meter)
		}
	}
	return meters
}

// price is what the meter costs in the period; nil: it has no price.
func (t *Terms) price(meter string) (*rating.Price, error) {
	own, ok := t.Period.Prices[meter]
	if !ok {
		return t.Plan.prices[meter], nil
	}
	read, err := rating.Compile(own, t.Plan.exponent)
	if err != nil {
		return nil, fmt.Errorf("the customer's own price of %s: %w", meter, err)
	}
	return read, nil
}

// span is the part [from, to) of the whole period that the period is cut from. What is outside
// of the whole one is left out.
func (t *Terms) span(from, to int64) rating.Span {
	p := &t.Period
	return rating.Span{Start: p.FullStart, End: p.FullEnd, From: from, To: to}
}

// own is the span of the period itself.
func (t *Terms) own() rating.Span { return t.span(t.Period.Start, t.Period.End) }

// base is what [from, to) of the base price costs; nothing in a trial.
func (t *Terms) base(from, to int64) int64 {
	if t.Period.Trial {
		return 0
	}
	return t.span(from, to).Money(t.Plan.Document.BasePriceMinor)
}

// minimum is the plan's minimum of the period; nothing in a trial.
func (t *Terms) minimum() int64 {
	if t.Period.Trial {
		return 0
	}
	return t.own().Money(t.Plan.Document.MinimumMinor)
}

// AdvanceBase is the base in advance of the period, charged from its start to an instant; 0 where
// none is due.
func (t *Terms) AdvanceBase(to int64) int64 {
	if !t.inAdvance() {
		return 0
	}
	return t.base(t.Period.Start, to)
}

// inAdvance reports whether the base price is due before the period.
func (t *Terms) inAdvance() bool { return t.Plan.Document.BaseIn == plans.InAdvance }

// name is what the plan is called on invoices.
func (p *Plan) name() string { return cmp.Or(p.Document.Name, p.Key) }
