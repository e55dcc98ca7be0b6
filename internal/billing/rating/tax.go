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
	Inclusive bool   `json:"inclusive"` // prices include the tax
}

// Errors of NewTaxes.
var (
	ErrPercent    = errors.New("a tax rate " + PercentRule)
	ErrMixedTaxes = errors.New("taxes must be all inclusive or all exclusive")
)

// PercentRule is the error text for a percent that ValidPercent rejects.
const PercentRule = `must be a decimal between "0" and "100" with at most 6 digits after the point, such as "8.875"`

// A percent is stored as an integer number of millionths of a percent, so 100 % equals hundred.
const (
	percentFraction       = 6
	hundred         int64 = 100_000_000
)

// ValidPercent reports whether s is a valid tax percent: a decimal number from 0 to 100 without sign or
// exponent, with at most 3 digits before the point and 6 after it.
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

// Taxes contains a customer's parsed tax rates. A nil *Taxes has no rates. Taxes are immutable, so any number
// of goroutines may use them.
type Taxes struct {
	list      []Tax
	percents  []int64 // of list
	sum       int64   // of percents
	inclusive bool
}

// NewTaxes parses the rates of a customer, in their order. It returns ErrPercent for a percent that
// ValidPercent rejects, and ErrMixedTaxes if inclusive and exclusive rates are mixed.
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

// TaxAmount is the tax of one rate on a subtotal, in minor units.
type TaxAmount struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`    // as written in the rate
	BaseMinor int64  `json:"base_minor"` // the subtotal; for an inclusive rate, its net part
	TaxMinor  int64  `json:"tax_minor"`
}

// Taxed is a subtotal with its taxes, all in minor units.
type Taxed struct {
	SubtotalMinor int64
	Taxes         []TaxAmount // one entry for each rate, in order; empty, not nil, without rates
	TaxMinor      int64       // sum of Taxes
	TotalMinor    int64       // the subtotal, plus the tax if the rates are exclusive
}

// On computes the taxes on a subtotal. For an exclusive rate the tax is subtotal·percent, rounded half away
// from zero. For inclusive rates the net is subtotal/(1+Σ rates), rounded in the same way. The difference is
// divided among the rates by largest remainder, with ties to the earlier rate. A negative subtotal is taxed
// by its absolute value, and the signs are changed. On returns ErrTooLarge if the subtotal or the total
// exceeds MaxMinor.
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

// inclusiveIn divides the difference between gross and net among the rates by largest remainder.
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
	for ; left > 0; left-- { // left is below the number of rates
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

// CreditNote returns the sums of a credit note, which are negative or 0. credited is the amount of earlier
// notes on the invoice's lines, and now the amount of this note, both in minor units and at least 0. t
// contains the invoice's rates. A tax is T(credited + now) − T(credited), so the notes of a whole invoice add
// up to its tax. Like On, CreditNote may return ErrTooLarge.
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
