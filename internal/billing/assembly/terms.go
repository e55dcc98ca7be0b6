package assembly

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// Plan is one version of a plan with parsed prices. Compile a version once and keep the result. A Plan is
// immutable, so any number of goroutines may use it.
type Plan struct {
	Key      string
	Version  int
	Document *plans.PlanInput
	exponent int
	prices   map[string]*rating.Price // by meter
}

// Compile parses a plan version. The caller must not modify document afterwards. The error reports an invalid
// document.
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

// Terms are a period with its pricing: version Period.Version of plan Period.PlanID, and the customer's own
// prices in Period.Prices.
type Terms struct {
	Period billing.Period
	Plan   *Plan
	// BasePlan is the plan version of Period.Base. OverPlan is the plan version of Period.Base.Over. Each is
	// nil without such a base price.
	BasePlan, OverPlan *Plan
}

// basePlan returns the plan version whose base price applies to the period.
func (t *Terms) basePlan() *Plan {
	if t.BasePlan != nil {
		return t.BasePlan
	}
	return t.Plan
}

// Over returns the terms of the base price that a cut at the period's start ended, for a period that ended
// there. ok is false if there is no such base.
func (t *Terms) Over() (over Terms, ok bool) {
	if t.Period.Base == nil || t.Period.Base.Over == nil {
		return Terms{}, false
	}
	b := *t.Period.Base.Over
	b.End = t.Period.Start
	p := billing.Period{
		Chain: t.Period.Chain, N: t.Period.N, End: b.End, FullStart: b.FullStart, FullEnd: b.FullEnd,
		PlanID: b.PlanID, Version: b.Version, Base: &b,
	}
	return Terms{Period: p, Plan: t.OverPlan, BasePlan: t.OverPlan}, true
}

// OtherBase reports whether the base price of the period's plan version differs from the base price that
// covers the period.
func (t *Terms) OtherBase() bool {
	own, runs := t.Plan.Document, t.basePlan().Document
	return own.BasePriceMinor != runs.BasePriceMinor || own.BaseEvery != runs.BaseEvery || own.BaseIn != runs.BaseIn
}

// Meters returns the meters that have a price in the period, in the order of the usage lines: first the
// plan's meters in the plan's order, then the meters that only the customer's own prices name, by key.
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

// price returns the meter's price in the period, or nil if the meter has no price.
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

// Cap returns the number of units of a meter that an amount in minor units allows in the period. units is nil
// if no number of units exceeds the amount, as in a trial. priced is false if the meter has no price in the
// period.
func (t *Terms) Cap(meter string, amount int64) (units *int64, priced bool, err error) {
	price, err := t.price(meter)
	if price == nil || err != nil {
		return nil, false, err
	}
	if t.Period.Trial {
		return nil, true, nil
	}
	if n, ok := price.Cap(amount, t.own()); ok {
		units = &n
	}
	return units, true, nil
}

// span returns the part [from, to) of the whole period from which the period is cut. Time outside the whole
// period is ignored.
func (t *Terms) span(from, to int64) rating.Span {
	p := &t.Period
	return rating.Span{Start: p.FullStart, End: p.FullEnd, From: from, To: to}
}

// own returns the span of the period itself.
func (t *Terms) own() rating.Span { return t.span(t.Period.Start, t.Period.End) }

// base returns the base price for [from, to), which is 0 in a trial.
func (t *Terms) base(from, to int64) int64 {
	if t.Period.Trial {
		return 0
	}
	b := t.Period.BaseOf()
	return rating.Span{Start: b.FullStart, End: b.FullEnd, From: from, To: to}.Money(t.basePlan().Document.BasePriceMinor)
}

// minimum returns the plan's minimum for the period, which is 0 in a trial.
func (t *Terms) minimum() int64 {
	if t.Period.Trial {
		return 0
	}
	return t.own().Money(t.Plan.Document.MinimumMinor)
}

// AdvanceBase returns the base price from the period's start up to an instant, or 0 if the base price is not
// due in advance.
func (t *Terms) AdvanceBase(to int64) int64 {
	if !t.inAdvance() {
		return 0
	}
	return t.base(t.Period.Start, to)
}

// inAdvance reports whether the base price is due before the period.
func (t *Terms) inAdvance() bool { return t.basePlan().Document.BaseIn == plans.InAdvance }

// name returns the plan's name on invoices.
func (p *Plan) name() string { return cmp.Or(p.Document.Name, p.Key) }

// UsageLine returns the usage line of a meter for a quantity, as on an invoice of the period but without N.
// The quota endpoint also uses it, and units beyond Included are the overage. ok is false if the meter has no
// price in the period. If an invoice would be held, the error is rating.ErrTooLarge and the line lacks only
// its amount. meter must contain at least the key.
func (t *Terms) UsageLine(meter plans.Meter, quantity int64) (line billing.Line, ok bool, err error) {
	price, err := t.price(meter.Key)
	if price == nil || err != nil {
		return billing.Line{}, false, err
	}
	rated, err := price.Rate(quantity, t.own())
	if err != nil && !errors.Is(err, rating.ErrTooLarge) {
		return billing.Line{}, false, err
	}
	line = t.line(billing.LineUsage, named(meter)+": "+counted(quantity, meter.Unit), t.Period.Start, t.Period.End)
	line.Meter, line.Quantity, line.Included, line.Part = meter.Key, quantity, rated.Included, partOf(t.own())
	if err = cmp.Or(err, tooMany(quantity)); t.Period.Trial {
		line.Description += ", trial"
		return line, true, tooMany(quantity)
	}
	rate(&line, price, &rated)
	return line, true, err
}

// rate sets the price details and the amount of a line.
func rate(line *billing.Line, price *rating.Price, rated *rating.Line) {
	line.Priced, line.Applied, line.WholeMinor, line.AmountMinor = price.Priced(), rated.Applied, rated.WholeMinor, rated.AmountMinor
	for _, tier := range rated.Tiers {
		line.Tiers = append(line.Tiers, billing.TierLine(tier))
	}
}

// CorrectionLine returns the line of a correction, as on an invoice but without N. An invoice omits the line
// if its amount is 0, but still includes its units. Included units, tiers and the applied bound refer to all
// units, see billing.Before. ok is false if the meter had no price in the corrected period. If an invoice
// would be held, the error is rating.ErrTooLarge.
func CorrectionLine(c Correction, meter plans.Meter) (line billing.Line, ok bool, err error) {
	price, err := c.Of.price(c.Meter)
	if price == nil || err != nil {
		return billing.Line{}, false, err
	}
	of := c.OfNumber
	if of == "" {
		of = c.OfInvoice
	}
	meter.Key = c.Meter
	delta := c.Now - c.Counted
	line = c.Of.line(billing.LineCorrection, "", c.Of.Period.Start, c.Of.Period.End)
	line.Meter, line.OfInvoice, line.Quantity, line.Part = c.Meter, c.OfInvoice, delta, partOf(c.Of.own())
	line.Before = &billing.Before{Quantity: c.Counted, AmountMinor: c.BilledMinor, CreditedMinor: c.NotedMinor}
	line.Description = fmt.Sprintf("Correction of invoice %s, %s: %s", of, named(meter), counted(delta, meter.Unit))
	if err := tooMany(c.Now); err != nil || (delta > 0) != (c.Now > c.Counted) {
		return line, true, rating.ErrTooLarge // a count is saturated, or the difference overflows
	}
	if c.Of.Period.Trial {
		return line, true, nil
	}
	corrected, err := price.Correction(c.Now, c.BilledMinor, c.NotedMinor, c.Of.own())
	if err != nil && !errors.Is(err, rating.ErrTooLarge) {
		return billing.Line{}, false, err
	}
	line.Included = corrected.Included
	rate(&line, price, &corrected)
	return line, true, err
}

// tooMany returns rating.ErrTooLarge for a saturated count, because the true number of units is unknown.
func tooMany(quantity int64) error {
	if quantity == math.MaxInt64 || quantity <= -math.MaxInt64 {
		return rating.ErrTooLarge
	}
	return nil
}

// baseLine returns a line of the base price that covers the period.
func (t *Terms) baseLine(kind, description string, from, to int64) billing.Line {
	line := t.line(kind, description+", "+t.basePlan().name(), from, to)
	line.PlanVersion = t.basePlan().Version
	b := t.Period.BaseOf()
	line.Part = partOf(rating.Span{Start: b.FullStart, End: b.FullEnd, From: from, To: to})
	line.WholeMinor = &t.basePlan().Document.BasePriceMinor
	return line
}

// minimumLine returns the line that raises a period to the plan's minimum, without its amount.
func (t *Terms) minimumLine() billing.Line {
	line := t.line(billing.LineMinimum, "Difference to the minimum price, "+t.Plan.name(), t.Period.Start, t.Period.End)
	line.Part, line.WholeMinor = partOf(t.own()), &t.Plan.Document.MinimumMinor
	return line
}

// partOf returns the part of the whole period that a span covers. The result is nil if the span is the whole
// period.
func partOf(s rating.Span) *billing.Part {
	if s.From == s.Start && s.To == s.End {
		return nil
	}
	return &billing.Part{From: s.From, To: s.To, OfFrom: s.Start, OfTo: s.End}
}

// line returns a line with the plan version of the terms, without quantity and amount.
func (t *Terms) line(kind, description string, from, to int64) billing.Line {
	return billing.Line{
		Kind: kind, Description: description, From: from, To: to,
		PlanVersion: t.Plan.Version, Tiers: []billing.TierLine{},
	}
}

// named returns the meter's name on invoices.
func named(meter plans.Meter) string { return cmp.Or(meter.Name, meter.Key) }

// counted formats a quantity for people: "12,345 × request". The unit is written as declared, with "×",
// because its plural is unknown. Without a unit, the result is "12,345 units".
func counted(quantity int64, unit string) string {
	switch {
	case unit != "":
		return grouped(quantity) + " × " + unit
	case quantity == 1 || quantity == -1:
		return grouped(quantity) + " unit"
	}
	return grouped(quantity) + " units"
}

// grouped formats an integer with a comma before each group of three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for end := len(digits) - 3; end > 0; end -= 3 {
		digits = digits[:end] + "," + digits[end:]
	}
	return sign + digits
}
