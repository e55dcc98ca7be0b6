package rating

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
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
