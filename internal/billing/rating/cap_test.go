package rating_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// amountOf is R(m); an amount that no invoice may have is above all caps.
func amountOf(t interface{ Fatal(...any) }, p *rating.Price, m int64, s rating.Span) int64 {
	line, err := p.Rate(m, s)
	if errors.Is(err, rating.ErrTooLarge) {
		return math.MaxInt64
	}
	if err != nil {
		t.Fatal(err)
	}
	return line.AmountMinor
}

// TestCapIsTheFirstAbove: a cap's units are those before the first quantity that costs too much, found
// by trying one after the other.
func TestCapIsTheFirstAbove(t *testing.T) {
	const tried = 600
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpan(t)
		p, err := rating.Compile(drawPrice(t), rapid.IntRange(0, 4).Draw(t, "exponent"))
		if err != nil {
			t.Fatal(err)
		}
		amount := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, 20_000), rapid.Int64Range(0, rating.MaxMinor)).Draw(t, "amount")
		if rapid.Bool().Draw(t, "an amount that is reached") {
			amount = min(amountOf(t, p, rapid.Int64Range(0, tried).Draw(t, "by"), s), rating.MaxMinor)
		}
		most := max(amount, amountOf(t, p, 0, s))
		want := int64(-1)
		for m := int64(1); m <= tried && want < 0; m++ {
			if amountOf(t, p, m, s) > most {
				want = m - 1
			}
		}
		n, ok := p.Cap(amount, s)
		switch {
		case want >= 0 && (!ok || n != want):
			t.Fatalf("%d units, %v; want %d", n, ok, want)
		case want < 0 && ok && n < tried:
			t.Fatalf("%d units, and %d cost no more than %d", n, tried, most)
		case ok && n < math.MaxInt64 && (amountOf(t, p, n, s) > most || amountOf(t, p, n+1, s) <= most):
			t.Fatalf("%d units cost %d, and one more %d, at a cap of %d", n, amountOf(t, p, n, s), amountOf(t, p, n+1, s), most)
		case !ok && amountOf(t, p, math.MaxInt64/2, s) > most:
			t.Fatalf("no cap, and %d units cost %d", int64(math.MaxInt64/2), amountOf(t, p, math.MaxInt64/2, s))
		}
	})
}

func TestCaps(t *testing.T) {
	tiers := []plans.Tier{{UpTo: ptr(int64(100)), UnitPrice: "1"}, {UnitPrice: "0.5"}}
	whole, half := rating.Span{}, rating.Span{Start: 0, End: 100, From: 0, To: 50}
	for name, c := range map[string]struct {
		price  plans.Price
		amount int64
		span   rating.Span
		n      int64
		ok     bool
	}{
		"per unit":                      {plans.Price{Model: "per_unit", UnitPrice: ptr("0.01")}, 5000, whole, 5000, true},
		"half a cent is a cent":         {plans.Price{Model: "per_unit", UnitPrice: ptr("0.005")}, 0, whole, 0, true},
		"less than half is none":        {plans.Price{Model: "per_unit", UnitPrice: ptr("0.001")}, 0, whole, 4, true},
		"included come off first":       {plans.Price{Model: "per_unit", UnitPrice: ptr("0.01"), Included: 1000}, 50, whole, 1050, true},
		"included are cut":              {plans.Price{Model: "per_unit", UnitPrice: ptr("0.01"), Included: 1000}, 50, half, 550, true},
		"nothing costs":                 {plans.Price{Model: "per_unit", UnitPrice: ptr("0")}, 0, whole, 0, false},
		"a package is whole":            {plans.Price{Model: "package", PackageSize: ptr(int64(100)), PackagePrice: ptr("2")}, 500, whole, 200, true},
		"a minimum is owed anyway":      {plans.Price{Model: "per_unit", UnitPrice: ptr("0.01"), MinimumMinor: ptr(int64(900))}, 50, whole, 900, true},
		"no more than the maximum":      {plans.Price{Model: "per_unit", UnitPrice: ptr("1"), MaximumMinor: ptr(int64(900))}, 900, whole, 0, false},
		"below the maximum":             {plans.Price{Model: "per_unit", UnitPrice: ptr("1"), MaximumMinor: ptr(int64(900))}, 899, whole, 8, true},
		"a cheaper tier is not reached": {plans.Price{Model: "volume", Tiers: tiers}, 6000, whole, 60, true},
		"or is":                         {plans.Price{Model: "volume", Tiers: tiers}, 10_000, whole, 200, true},
		"graduated":                     {plans.Price{Model: "graduated", Tiers: tiers}, 10_100, whole, 102, true},
		"more than can be counted":      {plans.Price{Model: "per_unit", UnitPrice: ptr("0.000000000001")}, rating.MaxMinor, whole, 0, false},
	} {
		p, err := rating.Compile(c.price, 2)
		if err != nil {
			t.Fatal(name, err)
		}
		if n, ok := p.Cap(c.amount, c.span); n != c.n || ok != c.ok {
			t.Errorf("%s: %d, %v; want %d, %v", name, n, ok, c.n, c.ok)
		}
	}
}
