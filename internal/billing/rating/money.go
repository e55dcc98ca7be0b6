package rating

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"quotad/internal/plans"
)

// MaxMinor is the largest absolute amount, in minor units.
const MaxMinor int64 = 1e15 - 1

// ErrTooLarge reports an amount of 10¹⁵ minor units or more, or a count that exceeds 63 bits. An invoice with
// this error is held: it stays a draft that cannot be finalized.
var ErrTooLarge = errors.New("an amount of 10¹⁵ minor units or more")

// Format formats an amount as a decimal number in major units: 1234 with 2 digits is "12.34", -5 is "-0.05".
// With 0 digits the result has no point. exponent is the currency's, 0 to 4 (see plans.Exponent).
func Format(minor int64, exponent int) string {
	// digits contains the absolute value, because int64 cannot represent the absolute value of its minimum.
	digits := make([]byte, 0, 24)
	absolute := uint64(minor)
	if minor < 0 {
		absolute, digits = -absolute, append(digits, '-')
	}
	sign := len(digits)
	digits = strconv.AppendUint(digits, absolute, 10)
	if exponent <= 0 {
		return string(digits)
	}
	out := append(make([]byte, 0, len(digits)+exponent+2), digits[:sign]...)
	digits = digits[sign:]
	if whole := len(digits) - exponent; whole > 0 {
		out = append(append(out, digits[:whole]...), '.')
		return string(append(out, digits[whole:]...))
	}
	out = append(out, '0', '.')
	for range exponent - len(digits) {
		out = append(out, '0')
	}
	return string(append(out, digits...))
}

// Minus is the typographic minus sign, U+2212.
const Minus = "−"

// Grouped formats a decimal number for people, with a comma between groups of three digits before the point
// and with Minus instead of a hyphen. It returns any other text unchanged.
func Grouped(decimal string) string {
	digits, negative := strings.CutPrefix(decimal, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if strings.Trim(whole, "0123456789") != "" {
		return decimal
	}
	var b strings.Builder
	if negative {
		b.WriteString(Minus)
	}
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(whole[i])
	}
	if point {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// Short formats a decimal number that contains a point for people, without trailing zeros.
func Short(decimal string) string {
	return Grouped(strings.TrimRight(strings.TrimRight(decimal, "0"), "."))
}

// signs contains the currency signs that the fonts of documents include. Other currencies are written by
// their codes.
var signs = map[string]string{"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}

// Money formats a decimal number of major units for people, with its currency: "−€1,234.56", "CHF 0.05".
func Money(decimal, currency string) string {
	sign, ok := signs[currency]
	if !ok {
		sign = currency + " "
	}
	text := Grouped(decimal)
	if rest, negative := strings.CutPrefix(text, Minus); negative {
		return Minus + sign + rest
	}
	return sign + text
}

// Sum adds amounts, such as lines to a subtotal. It returns ErrTooLarge if the sum or an amount exceeds
// MaxMinor.
func Sum(minor ...int64) (int64, error) {
	sum := new(big.Int) // an overflow on the way must not depend on the order
	for _, m := range minor {
		if tooLarge(m) {
			return 0, ErrTooLarge
		}
		sum.Add(sum, big.NewInt(m))
	}
	if !sum.IsInt64() || tooLarge(sum.Int64()) {
		return 0, ErrTooLarge
	}
	return sum.Int64(), nil
}

// Lift returns the amount of a `minimum` line: the difference between minimum and amount, or 0 if amount
// reaches the minimum. amount is the sum of the base and the usage lines of a period. minimum is the plan's,
// prorated by Span.Money.
func Lift(amount, minimum int64) int64 { return max(0, minimum-amount) }

func tooLarge(minor int64) bool { return minor > MaxMinor || minor < -MaxMinor }

// mulDiv returns the integer quotient and the remainder of a·b/c, for a ≥ 0, 0 ≤ b ≤ c and c > 0. So the
// quotient is at most a. The product may need 126 bits.
func mulDiv(a, b, c int64) (quotient, remainder int64) {
	product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	q, r := product.QuoRem(product, big.NewInt(c), new(big.Int))
	return q.Int64(), r.Int64()
}

// mulDivRounded is mulDiv rounded to the nearest whole number, half away from zero.
func mulDivRounded(a, b, c int64) int64 {
	quotient, remainder := mulDiv(a, b, c)
	if remainder >= c-remainder {
		quotient++
	}
	return quotient
}

// Span is a full billing period [Start, End) with its billed part [From, To), in µs since the Unix epoch:
// Start < End, Start ≤ From ≤ To ≤ End. The zero Span is a whole period.
//
// The amounts of adjacent parts add up to the amount of the full period, because each amount is a difference
// P(To) − P(From).
type Span struct{ Start, End, From, To int64 }

// Money returns the share of the span in an amount of the full period, in minor units. The share is P(To) −
// P(From), with P(t) = minor·(t−Start)/(End−Start) rounded half away from zero. minor is 0 … MaxMinor. Money
// prorates base prices, minimums and maximums. A refund of unused base is the negative Money of the unused
// span.
func (s Span) Money(minor int64) int64 {
	if s.whole() || minor == 0 {
		return minor
	}
	return mulDivRounded(minor, s.until(s.To), s.length()) - mulDivRounded(minor, s.until(s.From), s.length())
}

// Units returns the share of the span in a number of units of the full period. Units works like Money but
// rounds down at both points. units is 0 or more. Units prorates included units.
func (s Span) Units(units int64) int64 {
	if s.whole() || units == 0 {
		return units
	}
	to, _ := mulDiv(units, s.until(s.To), s.length())
	from, _ := mulDiv(units, s.until(s.From), s.length())
	return to - from
}

func (s Span) whole() bool { return s.From == s.Start && s.To == s.End }

func (s Span) length() int64 { return s.End - s.Start }

// until returns the time of the full period that has elapsed at t. If t lies outside the period, the nearest
// end counts.
func (s Span) until(t int64) int64 { return min(max(t, s.Start), s.End) - s.Start }

// maxExponent is the maximum number of digits of a minor unit in ISO 4217.
const maxExponent = 4

// precision suffices for every amount. A price has at most 27 digits, a quantity 19 and a price 100 tiers,
// and a flat price adds one digit.
const precision = 64

// exactly is the context of exact arithmetic. A result that needs rounding is an error.
var exactly = apd.Context{
	Precision:   precision,
	MaxExponent: apd.MaxExponent,
	MinExponent: apd.MinExponent,
	Rounding:    apd.RoundHalfUp,
	Traps:       apd.DefaultTraps | apd.Inexact | apd.Rounded,
}

// roundly is the context that rounds half away from zero, which apd calls half up. Each line is rounded with
// it once.
var roundly = apd.Context{
	Precision:   precision,
	MaxExponent: apd.MaxExponent,
	MinExponent: apd.MinExponent,
	Rounding:    apd.RoundHalfUp,
	Traps:       apd.DefaultTraps,
}

// parse parses an amount in major units that package plans has checked.
func parse(into *apd.Decimal, s string) error {
	if _, _, err := exactly.SetString(into, s); err != nil {
		return fmt.Errorf("the price %q: %w", plans.Shorten(s), err)
	}
	return nil
}

// millionths is the number of millionths in a unit.
var millionths = big.NewInt(1e6)

// micro converts units to millionths.
func micro(units int64) *big.Int {
	n := big.NewInt(units)
	return n.Mul(n, millionths)
}

// whole converts millionths, at least 0, to units, rounded half up.
func whole(micro *big.Int) int64 {
	n := new(big.Int).Add(micro, big.NewInt(500_000))
	return n.Quo(n, millionths).Int64()
}

// times sets into to price·n, with n ≥ 0 in millionths.
func times(into, price *apd.Decimal, n *big.Int) error {
	factor := apd.Decimal{Exponent: -6}
	factor.Coeff.SetMathBigInt(n)
	_, err := exactly.Mul(into, price, &factor)
	return err
}

// add sets sum to sum + term.
func add(sum, term *apd.Decimal) error {
	_, err := exactly.Add(sum, sum, term)
	return err
}

// toMinor rounds an amount in major units to minor units. If the amount is too large for any invoice, the
// result is MaxMinor + 1.
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

// text formats an amount without trailing zeros and without an exponent: "10", "0.05".
func text(d *apd.Decimal) string {
	var reduced apd.Decimal
	reduced.Reduce(d)
	return reduced.Text('f')
}
