package rating

import (
	"fmt"

	"github.com/cockroachdb/apd/v3"

	"quotad/internal/plans"
)

// The most digits of a minor unit in ISO 4217.
const maxExponent = 4

// precision has room for every amount: a price has 27 digits at most, a quantity 19, a price
// 100 tiers, and a flat price adds one digit more.
const precision = 64

// exactly computes, and refuses to round: a result with more digits than there is room for is
// an error.
var exactly = apd.Context{
	Precision:   precision,
	MaxExponent: apd.MaxExponent,
	MinExponent: apd.MinExponent,
	Rounding:    apd.RoundHalfUp,
	Traps:       apd.DefaultTraps | apd.Inexact | apd.Rounded,
}

// roundly rounds half away from zero, which apd calls half up. Each line is rounded by it once.
var roundly = apd.Context{
	Precision:   precision,
	MaxExponent: apd.MaxExponent,
	MinExponent: apd.MinExponent,
	Rounding:    apd.RoundHalfUp,
	Traps:       apd.DefaultTraps,
}

// parse reads an amount in major units, as plans checked it.
func parse(into *apd.Decimal, s string) error {
	if _, _, err := exactly.SetString(into, s); err != nil {
		return fmt.Errorf("the price %q: %w", plans.Shorten(s), err)
	}
	return nil
}

// times is price·n, n ≥ 0.
func times(into, price *apd.Decimal, n int64) error {
	var factor apd.Decimal
	factor.SetInt64(n)
	_, err := exactly.Mul(into, price, &factor)
	return err
}

// add is sum + term, in sum.
func add(sum, term *apd.Decimal) error {
	_, err := exactly.Add(sum, sum, term)
	return err
}

// toMinor rounds an amount in major units to minor ones. What is too large for any invoice is
// MaxMinor + 1.
func toMinor(exact *apd.Decimal, exponent int) (int64, error) {
	var rounded apd.Decimal
	if _, err := roundly.Quantize(&rounded, exact, -int32(exponent)); err != nil {
		return 0, err
	}
	if !rounded.Coeff.IsInt64() {
		return MaxMinor + 1, nil
	}
	return min(rounded.Coeff.Int64(), MaxMinor+1), nil
}

// text writes an amount without zeros at its end and without an exponent: "10", "0.05".
func text(d *apd.Decimal) string {
	var reduced apd.Decimal
	reduced.Reduce(d)
	return reduced.Text('f')
}
