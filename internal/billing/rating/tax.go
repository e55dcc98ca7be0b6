package rating

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Tax is one rate of a customer's taxes.
type Tax struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`   // see ValidPercent
	Inclusive bool   `json:"inclusive"` // prices hold the tax already
}

// What NewTaxes refuses.
var (
	ErrPercent    = errors.New("a tax rate " + PercentRule)
	ErrMixedTaxes = errors.New("taxes must be all inclusive or all exclusive")
)

// PercentRule is the text about a percent that ValidPercent refuses.
const PercentRule = `must be a decimal between "0" and "100" with at most 6 digits after the point, such as "8.875"`

// A percent is kept as a whole number of millionths of a percent, so hundred of them are 100 %.
const (
	percentFraction       = 6
	hundred         int64 = 100_000_000
)

// ValidPercent reports whether s may be the percent of a tax: a decimal number from 0 to 100
// without sign or exponent, at most 3 digits before the point and 6 after it.
func ValidPercent(s string) bool {
	_, ok := parsePercent(s)
	return ok
}

func parsePercent(s string) (millionths int64, ok bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if len(whole) == 0 || len(whole) > 3 || point && len(fraction) == 0 || len(fraction) > percentFraction {
		return 0, false
	}
	digits := whole + fraction + strings.Repeat("0", percentFraction-len(fraction))
	n, err := strconv.ParseUint(digits, 10, 63)
	return int64(n), err == nil && int64(n) <= hundred
}

// Taxes are the rates of a customer, read once. A nil *Taxes has none. They are not changed, so
// any number of goroutines may use them.
type Taxes struct {
	list      []Tax
	percents  []int64 // of list
	sum       int64   // of percents
	inclusive bool
}

// NewTaxes reads the rates of a customer, in their order. It is ErrPercent for a percent that
// ValidPercent refuses, and ErrMixedTaxes where some are inclusive and some are not.
func NewTaxes(list []Tax) (*Taxes, error) {
	t := &Taxes{list: append([]Tax{}, list...)}
	for i, tax := range list {
		percent, ok := parsePercent(tax.Percent)
		if !ok {
			return nil, fmt.Errorf("taxes[%d]: %w", i, ErrPercent)
		}
		if i > 0 && tax.Inclusive != t.inclusive {
			return nil, fmt.Errorf("taxes[%d]: %w", i, ErrMixedTaxes)
		}
		t.inclusive = tax.Inclusive
		t.percents = append(t.percents, percent)
		t.sum += percent
	}
	return t, nil
}

// TaxAmount is what one rate makes of a subtotal, in minor units.
type TaxAmount struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`    // as it was written
	BaseMinor int64  `json:"base_minor"` // the subtotal; of an inclusive rate the net in it
	TaxMinor  int64  `json:"tax_minor"`
}

// Taxed is a subtotal with its taxes, all in minor units.
type Taxed struct {
	SubtotalMinor int64
	Taxes         []TaxAmount // a rate each, in their order; empty, not nil, without rates
	TaxMinor      int64       // Σ Taxes
	TotalMinor    int64       // inclusive: the subtotal; exclusive: with the tax
}

// On computes the taxes on a subtotal. An exclusive rate is subtotal·percent, rounded half away
// from zero. With inclusive rates the net is subtotal/(1+Σ rates), rounded likewise, and the
// rest is divided among them by largest remainder, ties to the earlier. A negative subtotal is
// taxed as its absolute value, with the sign changed. It is ErrTooLarge where the subtotal or
// the total is beyond MaxMinor.
func (t *Taxes) On(subtotal int64) (Taxed, error) {
	if tooLarge(subtotal) {
		return Taxed{}, ErrTooLarge
	}
	if subtotal < 0 {
		taxed, err := t.On(-subtotal)
		return taxed.negated(), err
	}
	taxed := Taxed{SubtotalMinor: subtotal, TotalMinor: subtotal, Taxes: []TaxAmount{}}
	if t == nil || len(t.list) == 0 {
		return taxed, nil
	}
	net, taxes := subtotal, t.exclusiveOn
	if t.inclusive {
		net, taxes = mulDivRounded(subtotal, hundred, hundred+t.sum), t.inclusiveIn
	}
	for i, tax := range taxes(subtotal, net) {
		taxed.Taxes = append(taxed.Taxes, TaxAmount{Name: t.list[i].Name, Percent: t.list[i].Percent, BaseMinor: net, TaxMinor: tax})
		taxed.TaxMinor += tax
	}
	if !t.inclusive {
		taxed.TotalMinor += taxed.TaxMinor
	}
	if tooLarge(taxed.TotalMinor) {
		return Taxed{}, ErrTooLarge
	}
	return taxed, nil
}

func (t *Taxes) exclusiveOn(subtotal, _ int64) []int64 {
	taxes := make([]int64, len(t.percents))
	for i, percent := range t.percents {
		taxes[i] = mulDivRounded(subtotal, percent, hundred)
	}
	return taxes
}

// inclusiveIn divides what is not net by largest remainder.
func (t *Taxes) inclusiveIn(gross, net int64) []int64 {
	rest := gross - net
	taxes, remainders := make([]int64, len(t.percents)), make([]int64, len(t.percents))
	if t.sum == 0 {
		return taxes
	}
	left := rest
	for i, percent := range t.percents {
		taxes[i], remainders[i] = mulDiv(rest, percent, t.sum)
		left -= taxes[i]
	}
	for ; left > 0; left-- { // less than one for each rate
		largest := 0
		for i := range remainders {
			if remainders[i] > remainders[largest] {
				largest = i
			}
		}
		taxes[largest]++
		remainders[largest] = -1
	}
	return taxes
}

// CreditNote is the sums of a credit note as they stand on it, negative or 0. credited is what
// earlier notes took from the lines of the invoice, now what this one takes, in minor units, 0
// or more; t are the invoice's rates. A tax is T(credited + now) − T(credited), so notes over a
// whole invoice add up to its tax. It is ErrTooLarge as On is.
func (t *Taxes) CreditNote(credited, now int64) (Taxed, error) {
	if tooLarge(credited) || tooLarge(now) {
		return Taxed{}, ErrTooLarge
	}
	before, err := t.On(credited)
	if err != nil {
		return Taxed{}, err
	}
	after, err := t.On(credited + now)
	if err != nil {
		return Taxed{}, err
	}
	for i := range after.Taxes {
		after.Taxes[i].BaseMinor -= before.Taxes[i].BaseMinor
		after.Taxes[i].TaxMinor -= before.Taxes[i].TaxMinor
	}
	after.SubtotalMinor -= before.SubtotalMinor
	after.TaxMinor -= before.TaxMinor
	after.TotalMinor -= before.TotalMinor
	return after.negated(), nil
}

// negated changes the sign of all amounts, in place.
func (t Taxed) negated() Taxed {
	for i := range t.Taxes {
		t.Taxes[i].BaseMinor, t.Taxes[i].TaxMinor = -t.Taxes[i].BaseMinor, -t.Taxes[i].TaxMinor
	}
	t.SubtotalMinor, t.TaxMinor, t.TotalMinor = -t.SubtotalMinor, -t.TaxMinor, -t.TotalMinor
	return t
}
