package assembly_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
)

// What a projection does to an invoice, by hand: at a third of the period usage is threefold, and all
// else is as it was.
func TestAProjectionIsTheInvoiceOfMoreUsage(t *testing.T) {
	of := terms(version(t, func(in *plans.PlanInput) { in.BasePriceMinor, in.MinimumMinor = 1000, 3000 }), 0, 30)
	in := period(of)
	in.Usage = map[string]int64{"a": 101, "b": 400}
	in.Charges = []billing.Charge{{ID: "c", Description: "Setup", AmountMinor: 700, Currency: "USD", At: 0}}
	in.Account.Taxes = []billing.TaxRate{{Name: "VAT", Percent: "19"}}
	in.Credits = []billing.Credit{{ID: "k", Kind: billing.CreditPaid, AmountMinor: 100, LeftMinor: 100, Currency: "USD"}}
	same(t, "so far", lines(made(t, in)), "1 base 0-30 1000\n2 usage b 0-30 400/0 500\n3 usage a 0-30 101/100 10\n4 minimum 0-30 1490\n5 charge 0-0 700")
	projected, ok := in.Projected(10*day, nil)
	if !ok {
		t.Fatal("no projection")
	}
	// 1,200 of b are two packages; 303 of a are 203 beyond the included ones.
	inv := made(t, projected)
	same(t, "projected", lines(inv), "1 base 0-30 1000\n2 usage b 0-30 1200/0 1000\n3 usage a 0-30 303/100 2030\n4 charge 0-0 700")
	same(t, "sums", sums(inv), "4730 + 899 = 5629 - 100 = 5529")
	same(t, "the input's usage", fmt.Sprint(in.Usage), "map[a:101 b:400]")
	at, _ := in.Projected(30*day-1, nil)
	same(t, "at the end", fmt.Sprint(at.Usage), "map[a:101 b:400]")
	in.Terms = trial(in.Terms)
	projected, _ = in.Projected(10*day, nil)
	same(t, "in a trial", lines(made(t, projected)), "1 usage b 0-30 1200/0 0\n2 usage a 0-30 303/100 0\n3 charge 0-0 700")
}

// A young period says nothing: a hundredth of it must have passed, and ten minutes.
func TestAProjectionNeedsTime(t *testing.T) {
	const minute = day / 1440
	for _, c := range []struct {
		of    assembly.Terms
		after int64
		ok    bool
	}{
		{terms(version(t, nil), 0, 30), 30*day/100 - 1, false},
		{terms(version(t, nil), 0, 30), 30 * day / 100, true},
		{terms(version(t, nil), 10, 11), day/100 - 1, false},
		{terms(version(t, nil), 10, 11), day / 100, true},
		{ending(terms(version(t, nil), 10, 11), 60*minute), 10*minute - 1, false},
		{ending(terms(version(t, nil), 10, 11), 60*minute), 10 * minute, true},
		{ending(terms(version(t, nil), 10, 11), 60*minute), 61 * minute, false}, // it is over
		{terms(version(t, nil), 0, 30), -1, false},
	} {
		if _, ok := period(c.of).Projected(c.of.Period.Start+c.after, nil); ok != c.ok {
			t.Errorf("%d µs of %d: %v", c.after, c.of.Period.End-c.of.Period.Start, ok)
		}
	}
}

// ending cuts a period after so many µs.
func ending(t assembly.Terms, after int64) assembly.Terms {
	t.Period.End = t.Period.Start + after
	return t
}

// Extrapolated usage is the rounded ratio of exact numbers, whatever their size.
func TestProjectedUsageIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Int64Range(1000, 400*day).Draw(t, "whole") * 1000
		elapsed := rapid.Int64Range(max(whole/100, 600e6), max(whole, 600e6)).Draw(t, "elapsed")
		units := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-10, 1_000_000)).Draw(t, "units")
		in := period(ending(terms(version(t, nil), 0, 30), whole))
		in.Usage = map[string]int64{"a": units}
		projected, ok := in.Projected(elapsed, nil)
		if elapsed > whole || elapsed < whole/100 {
			if ok {
				t.Fatal("a projection of no time")
			}
			return
		}
		want := big.NewRat(1, 2)
		want.Add(want, new(big.Rat).Mul(big.NewRat(max(units, 0), 1), big.NewRat(whole, elapsed)))
		floor := new(big.Int).Quo(want.Num(), want.Denom())
		if units <= 0 {
			floor = big.NewInt(units)
		} else if !floor.IsInt64() {
			floor = big.NewInt(math.MaxInt64)
		}
		if !ok || projected.Usage["a"] != floor.Int64() {
			t.Fatalf("%d units in %d of %d are %d, not %s", units, elapsed, whole, projected.Usage["a"], floor)
		}
	})
}
