package assembly

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// UsageLine is the usage line of a meter for a quantity, as an invoice of the period has it, but
// without N. It also serves the quota endpoint: units beyond Included are its overage. ok is
// false where the meter has no price in the period. The error is rating.ErrTooLarge where an
// invoice would be held; the line then has all but its amount. meter may lack all but its key.
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
	line.Meter, line.Quantity, line.Included = meter.Key, quantity, rated.Included
	if t.Period.Trial {
		line.Description += ", trial"
		return line, true, tooMany(quantity)
	}
	line.Priced, line.Applied = price.Priced(), rated.Applied
	if err != nil {
		return line, true, err
	}
	for _, tier := range rated.Tiers {
		line.Tiers = append(line.Tiers, billing.TierLine(tier))
	}
	line.AmountMinor = rated.AmountMinor
	return line, true, tooMany(quantity)
}

// CorrectionLine is the line of a correction, as an invoice has it, but without N. It may have
// an amount of 0; an invoice then leaves it out, and yet takes its units. It says the price of a
// unit or package, and neither tiers nor what was applied: it is the difference of two amounts. ok
// is false where the meter had no price in the corrected period. The error is rating.ErrTooLarge where an invoice
// would be held.
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
	line.Meter, line.OfInvoice, line.Quantity, line.Before = c.Meter, c.OfInvoice, delta, c.Counted
	line.Description = fmt.Sprintf("Correction of invoice %s, %s: %s", of, named(meter), counted(delta, meter.Unit))
	if err := tooMany(c.Now); err != nil || (delta > 0) != (c.Now > c.Counted) {
		return line, true, rating.ErrTooLarge // a count is full, or their difference has 64 bits
	}
	if c.Of.Period.Trial {
		return line, true, nil
	}
	line.Priced = price.Priced()
	line.AmountMinor, err = price.Correction(c.Now, c.BilledMinor, c.NotedMinor, c.Of.own())
	if err != nil && !errors.Is(err, rating.ErrTooLarge) {
		return billing.Line{}, false, err
	}
	return line, true, err
}

// tooMany is rating.ErrTooLarge for a count that is full: nobody knows how many units it stands
// for.
func tooMany(quantity int64) error {
	if quantity == math.MaxInt64 || quantity <= -math.MaxInt64 {
		return rating.ErrTooLarge
	}
	return nil
}

// line is a line of the terms, without quantity and amount.
func (t *Terms) line(kind, description string, from, to int64) billing.Line {
	return billing.Line{
		Kind: kind, Description: description, From: from, To: to,
		PlanVersion: t.Plan.Version, Tiers: []billing.TierLine{},
	}
}

// named is what a meter is called on invoices.
func named(meter plans.Meter) string { return cmp.Or(meter.Name, meter.Key) }

// counted writes a quantity for people: "12,345 × request". A unit is written as it was
// declared, since its plural is not known; hence the "×". Without a unit it is "12,345 units".
func counted(quantity int64, unit string) string {
	switch {
	case unit != "":
		return grouped(quantity) + " × " + unit
	case quantity == 1 || quantity == -1:
		return grouped(quantity) + " unit"
	}
	return grouped(quantity) + " units"
}

// grouped writes an integer with a comma before each three digits.
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
