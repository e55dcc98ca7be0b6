package rating_test

import (
	"errors"
	"math/big"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// drawPrice is any price whose tiers and packages are small enough for loops.
func drawPrice(t *rapid.T) plans.Price {
	decimal := rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,3}(\.[0-9]{1,4})?`),
		rapid.StringMatching(`0\.0{0,3}[0-9]{0,2}5`),
		rapid.StringMatching(`[0-9]{1,7}(\.[0-9]{1,12})?`),
	)
	p := plans.Price{Model: rapid.SampledFrom(plans.PriceModels()).Draw(t, "model")}
	p.Included = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 60)).Draw(t, "included")
	if rapid.Bool().Draw(t, "has minimum") {
		p.MinimumMinor = ptr(rapid.Int64Range(0, 5000).Draw(t, "minimum"))
	}
	if rapid.Bool().Draw(t, "has maximum") {
		least := int64(0)
		if p.MinimumMinor != nil {
			least = *p.MinimumMinor
		}
		p.MaximumMinor = ptr(rapid.Int64Range(least, least+9999).Draw(t, "maximum"))
	}
	switch p.Model {
	case "per_unit":
		p.UnitPrice = ptr(decimal.Draw(t, "unit"))
	case "package":
		p.PackageSize, p.PackagePrice = ptr(rapid.Int64Range(1, 20).Draw(t, "size")), ptr(decimal.Draw(t, "package"))
	case "graduated", "volume":
		end := int64(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "tiers") {
			if i > 0 {
				end += rapid.Int64Range(1, 20).Draw(t, "wide")
				p.Tiers[i-1].UpTo = ptr(end)
			}
			tier := plans.Tier{UnitPrice: decimal.Draw(t, "unit")}
			if rapid.Bool().Draw(t, "has flat") {
				tier.FlatPrice = ptr(decimal.Draw(t, "flat"))
			}
			p.Tiers = append(p.Tiers, tier)
		}
	default:
		t.Fatalf("draw the fields of %s here", p.Model)
	}
	return p
}

func drawSpan(t *rapid.T) rating.Span {
	if rapid.Bool().Draw(t, "zero span") {
		return rating.Span{}
	}
	start := rapid.Int64Range(-4e18, 4e18).Draw(t, "start")
	length := rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, 400*day)).Draw(t, "length")
	from := rapid.Int64Range(0, length).Draw(t, "from")
	to := rapid.Int64Range(from, length).Draw(t, "to")
	return rating.Span{Start: start, End: start + length, From: start + from, To: start + to}
}

func TestLinesAreThoseOfTheNaiveWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, s := drawPrice(t), drawSpan(t)
		exponent := rapid.SampledFrom([]int{0, 2, 3, 4}).Draw(t, "exponent")
		quantity := rapid.Int64Range(-5, 150).Draw(t, "quantity")
		want := naiveRate(&p, quantity, s, exponent)
		price, err := rating.Compile(p, exponent)
		if err != nil {
			t.Fatal(err)
		}
		got, err := price.Rate(quantity, s)
		if err != nil {
			t.Fatal(err)
		}
		if got.AmountMinor != want.minor || got.Applied != want.applied || got.Overage != want.overage || rat(got.Exact).Cmp(want.exact) != 0 ||
			len(got.Tiers) != len(want.tiers) {
			t.Fatalf("got %+v\nwant %+v, exactly %s", got, want, want.exact.FloatString(12))
		}
		listed := 0
		for i := range p.Tiers {
			if tier := want.tiers[i]; tier != nil {
				if g := got.Tiers[listed]; g.Quantity != billing.Units(strconv.FormatInt(tier.units, 10)) || rat(g.Amount).Cmp(tier.amount) != 0 ||
					!reflect.DeepEqual(plans.Tier{UpTo: g.UpTo, UnitPrice: g.UnitPrice, FlatPrice: g.FlatPrice}, p.Tiers[i]) {
					t.Fatalf("tier %d: got %+v, want %+v", i, g, tier)
				}
				listed++
			}
		}
		delta := rapid.Int64Range(-200, 100).Draw(t, "delta")
		got, err = price.Correction(quantity+delta, want.minor, 0, s)
		if err != nil || got.AmountMinor != naiveRate(&p, quantity+delta, s, exponent).minor-want.minor {
			t.Fatalf("%d%+d: %d, %v", quantity, delta, got.AmountMinor, err)
		}
	})
}

// Any price that a plan may have, and any quantity: nothing is lost, and nothing fails but what
// is too large.
func TestHugeLines(t *testing.T) {
	decimal := rapid.StringMatching(`[0-9]{1,15}(\.[0-9]{1,12})?`)
	rapid.Check(t, func(t *rapid.T) {
		p := plans.Price{Model: rapid.SampledFrom([]string{"graduated", "volume"}).Draw(t, "model")}
		n := rapid.IntRange(1, 100).Draw(t, "tiers")
		for i := range n {
			tier := plans.Tier{UnitPrice: decimal.Draw(t, "unit"), FlatPrice: ptr(decimal.Draw(t, "flat"))}
			if i < n-1 {
				tier.UpTo = ptr(int64(i+1) * 1e13)
			}
			p.Tiers = append(p.Tiers, tier)
		}
		price, err := rating.Compile(p, 4)
		if err != nil {
			t.Fatal(err)
		}
		quantity := rapid.Int64Min(1).Draw(t, "quantity")
		line, err := price.Rate(quantity, rating.Span{})
		if err != nil && !errors.Is(err, rating.ErrTooLarge) {
			t.Fatal(err)
		}
		units, amount := int64(0), new(big.Rat)
		for _, tier := range line.Tiers {
			in, err := strconv.ParseInt(string(tier.Quantity), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			units += in
			amount.Add(amount, rat(tier.Amount))
		}
		if units != quantity || amount.Cmp(rat(line.Exact)) != 0 {
			t.Fatalf("%d of %d units, %s of %s", units, quantity, amount.FloatString(12), line.Exact)
		}
		minor := new(big.Rat).Mul(amount, integer(10_000))
		if tooLarge := minor.Cmp(new(big.Rat).Sub(integer(1e15), big.NewRat(1, 2))) >= 0; tooLarge != (err != nil) {
			t.Fatalf("%s: %v", line.Exact, err)
		}
	})
}
