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

// MaxMinor is the largest amount, in minor units, above zero or below.
const MaxMinor int64 = 1e15 - 1

// ErrTooLarge says that an amount would have 10¹⁵ minor units or more, or that a count would
// not fit into 63 bits. An invoice that meets it is held: a draft that cannot be finalized.
var ErrTooLarge = errors.New("an amount of 10¹⁵ minor units or more")

// Format writes an amount as a decimal number in major units: 1234 with 2 digits is "12.34", -5
// is "-0.05". With 0 digits it has no point. exponent is the currency's, 0 to 4 (see
// plans.Exponent).
func Format(minor int64, exponent int) string {
	// Digits of the absolute value, which for the least int64 is a uint64 only.
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

// Minus is the minus sign that people read, U+2212.
const Minus = "−"

// Grouped writes a decimal number for people: with a comma between each three digits before its
// point, and a minus sign in place of its hyphen. What is not a decimal number is left as it is.
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

// Short writes a decimal number that has a point for people, without zeros at its end.
func Short(decimal string) string {
	return Grouped(strings.TrimRight(strings.TrimRight(decimal, "0"), "."))
}

// signs are how currencies are written. The letters of documents have these; another currency is
// written by its code.
var signs = map[string]string{"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}

// Money writes a decimal number of major units for people, with its currency: "−€1,234.56",
// "CHF 0.05".
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

// Sum adds amounts, such as those of lines to a subtotal. It is ErrTooLarge where the sum, or
// one of the amounts, is beyond MaxMinor.
func Sum(minor ...int64) (int64, error) {
	sum := new(big.Int) // so that it does not depend on the order whether the way is too long
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

// Lift is the amount of a plan's line `minimum`: what the base and the usage lines of a period,
// together amount minor units, lack of minimum; 0 where they lack nothing. minimum is the
// plan's, cut by Span.Money.
func Lift(amount, minimum int64) int64 { return max(0, minimum-amount) }

func tooLarge(minor int64) bool { return minor > MaxMinor || minor < -MaxMinor }

// mulDiv is a·b/c in whole numbers, and what remains, for a ≥ 0 and 0 ≤ b ≤ c, c > 0: so the
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

// Span is a full billing period [Start, End) and the part of it [From, To) that is billed, in
// µs since the Unix epoch: Start < End, Start ≤ From ≤ To ≤ End. The zero Span is a whole
// period.
//
// The amounts of parts that follow each other add up to that of the full period, since each
// is a difference of two points: P(To) − P(From).
type Span struct{ Start, End, From, To int64 }

// Money is the part of an amount of the full period, in minor units, that belongs to the span:
// P(To) − P(From), where P(t) = minor·(t−Start)/(End−Start), rounded half away from zero. minor
// is 0 … MaxMinor. Base prices, minimums and maximums are cut by it. What of a base is given
// back is the Money of the unused span, with its sign changed.
func (s Span) Money(minor int64) int64 {
	if s.whole() || minor == 0 {
		return minor
	}
	return mulDivRounded(minor, s.until(s.To), s.length()) - mulDivRounded(minor, s.until(s.From), s.length())
}

// Units is the part of a number of units of the full period that belongs to the span, as Money
// but rounded down at both points. units is 0 or more. Included units are cut by it.
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

// until is how much of the full period has passed at t, which is taken into the period.
func (s Span) until(t int64) int64 { return min(max(t, s.Start), s.End) - s.Start }

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

// millionths are those of a unit.
var millionths = big.NewInt(1e6)

// micro is a number of units in millionths of one.
func micro(units int64) *big.Int {
	n := big.NewInt(units)
	return n.Mul(n, millionths)
}

// whole is a number of millionths in units, 0 or more, rounded half up.
func whole(micro *big.Int) int64 {
	n := new(big.Int).Add(micro, big.NewInt(500_000))
	return n.Quo(n, millionths).Int64()
}

// times is price·n, with n ≥ 0 in millionths.
func times(into, price *apd.Decimal, n *big.Int) error {
	factor := apd.Decimal{Exponent: -6}
	factor.Coeff.SetMathBigInt(n)
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
