package rating_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing/rating"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		minor    int64
		exponent int
		want     string
	}{
		{1234, 2, "12.34"},
		{-5, 2, "-0.05"},
		{0, 2, "0.00"},
		{100, 2, "1.00"},
		{-100, 2, "-1.00"},
		{99, 2, "0.99"},
		{1200, 0, "1200"},
		{-3, 0, "-3"},
		{0, 0, "0"},
		{1234, 3, "1.234"},
		{7, 3, "0.007"},
		{12345, 4, "1.2345"},
		{-1, 4, "-0.0001"},
		{rating.MaxMinor, 2, "9999999999999.99"},
		{math.MaxInt64, 2, "92233720368547758.07"},
		{math.MinInt64, 4, "-922337203685477.5808"},
	} {
		if got := rating.Format(c.minor, c.exponent); got != c.want {
			t.Errorf("%d, %d digits: %q, want %q", c.minor, c.exponent, got, c.want)
		}
	}
}

func TestFormatIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minor, exponent := rapid.Int64().Draw(t, "minor"), rapid.SampledFrom([]int{0, 2, 3, 4}).Draw(t, "exponent")
		got := rating.Format(minor, exponent)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
		want := new(big.Rat).SetFrac(big.NewInt(minor), scale)
		if got != want.FloatString(exponent) {
			t.Fatalf("%q, want %q", got, want.FloatString(exponent))
		}
	})
}

func TestSum(t *testing.T) {
	const most = rating.MaxMinor
	for _, c := range []struct {
		amounts []int64
		want    int64
	}{
		{nil, 0},
		{[]int64{1, -3}, -2},
		{[]int64{most}, most},
		{[]int64{most, most, -most}, most}, // the way there does not count
		{[]int64{-most, -most, most}, -most},
	} {
		if got, err := rating.Sum(c.amounts...); err != nil || got != c.want {
			t.Errorf("%v: %d, %v", c.amounts, got, err)
		}
	}
	many := make([]int64, 20_000) // an int64 would begin again below zero
	for i := range many {
		many[i] = most
	}
	for _, amounts := range [][]int64{{most, 1}, {-most, -1}, {most + 1, -1}, {math.MinInt64, math.MaxInt64, 1}, many} {
		if got, err := rating.Sum(amounts...); !errors.Is(err, rating.ErrTooLarge) {
			t.Errorf("%d of them: %d, %v", len(amounts), got, err)
		}
	}
}

// The plan's minimum lifts base and usage of a period, cut as the base is.
func TestLift(t *testing.T) {
	for _, c := range []struct{ amount, minimum, want int64 }{
		{0, 0, 0},
		{0, 500, 500},
		{499, 500, 1},
		{500, 500, 0},
		{501, 500, 0},
		{100, third.Money(1000), 234},
	} {
		if got := rating.Lift(c.amount, c.minimum); got != c.want {
			t.Errorf("%d to %d: %d, want %d", c.amount, c.minimum, got, c.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for decimal, want := range map[string]string{
		"0": "0", "999": "999", "1000": "1,000", "1234567.8901": "1,234,567.8901", "-1000": "−1,000", "-0.05": "−0.05", "100000.": "100,000.",
		"": "", "1E+3": "1E+3", "Infinity": "Infinity",
	} {
		if got := rating.Grouped(decimal); got != want {
			t.Errorf("%q is %q, want %q", decimal, got, want)
		}
	}
}
