package rating_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

func ptr[T any](v T) *T { return &v }

func perUnit(unit string) plans.Price { return plans.Price{Model: "per_unit", UnitPrice: &unit} }

func compile(t testing.TB, p plans.Price, exponent int) *rating.Price {
	t.Helper()
	price, err := rating.Compile(p, exponent)
	if err != nil {
		t.Fatal(err)
	}
	return price
}

func rate(t testing.TB, p plans.Price, exponent int, quantity int64, s rating.Span) rating.Line {
	t.Helper()
	line, err := compile(t, p, exponent).Rate(quantity, s)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// A month of 30 days, of which 10 are billed.
var (
	month = rating.Span{Start: 0, End: 30 * day, From: 0, To: 30 * day}
	third = rating.Span{Start: 0, End: 30 * day, From: 10 * day, To: 20 * day}
)

const day int64 = 24 * 3600 * 1e6

func TestLinesOfEachModel(t *testing.T) {
	tiers := []plans.Tier{
		{UpTo: ptr(int64(10)), UnitPrice: "0", FlatPrice: ptr("9")},
		{UpTo: ptr(int64(20)), UnitPrice: "0.50"},
		{UnitPrice: "0.105", FlatPrice: ptr("1.000")},
	}
	pack := plans.Price{Model: "package", PackageSize: ptr(int64(1000)), PackagePrice: ptr("1.50"), Included: 5}
	for name, c := range map[string]struct {
		price    plans.Price
		quantity int64
		want     rating.Line
	}{
		"per unit": {perUnit("0.0004"), 12345, rating.Line{Overage: 12345, Exact: "4.938", AmountMinor: 494}},
		"nothing":  {perUnit("0.0004"), 0, rating.Line{Exact: "0"}},
		"below 0":  {perUnit("0.0004"), -7, rating.Line{Exact: "0"}},
		"included come off first": {
			plans.Price{Model: "per_unit", UnitPrice: ptr("2"), Included: 3},
			5,
			rating.Line{Included: 3, Overage: 2, Exact: "4", AmountMinor: 400},
		},
		"included are not used up": {
			plans.Price{Model: "per_unit", UnitPrice: ptr("2"), Included: 3},
			2,
			rating.Line{Included: 3, Exact: "0"},
		},
		"a whole package":    {pack, 1005, rating.Line{Included: 5, Overage: 1000, Exact: "1.5", AmountMinor: 150}},
		"a begun package":    {pack, 1006, rating.Line{Included: 5, Overage: 1001, Exact: "3", AmountMinor: 300}},
		"no package":         {pack, 5, rating.Line{Included: 5, Exact: "0"}},
		"the longest amount": {perUnit("999999999999.999999999999"), 9, rating.Line{Overage: 9, Exact: "8999999999999.999999999991", AmountMinor: 9e14}},
		"graduated": {
			plans.Price{Model: "graduated", Tiers: tiers, Included: 4},
			26,
			rating.Line{Included: 4, Overage: 22, Exact: "15.21", AmountMinor: 1521, Tiers: []rating.TierAmount{
				{ptr(int64(10)), "10", "9", "0", ptr("9")}, {ptr(int64(20)), "10", "5", "0.50", nil}, {nil, "2", "1.21", "0.105", ptr("1.000")},
			}},
		},
		"graduated to the end of a tier": {
			plans.Price{Model: "graduated", Tiers: tiers},
			10,
			rating.Line{Overage: 10, Exact: "9", AmountMinor: 900, Tiers: []rating.TierAmount{{ptr(int64(10)), "10", "9", "0", ptr("9")}}},
		},
		"graduated, no unit": {plans.Price{Model: "graduated", Tiers: tiers, Included: 4}, 4, rating.Line{Included: 4, Exact: "0"}},
		"volume": {
			plans.Price{Model: "volume", Tiers: tiers, Included: 4},
			26,
			rating.Line{Included: 4, Overage: 22, Exact: "3.31", AmountMinor: 331, Tiers: []rating.TierAmount{{nil, "22", "3.31", "0.105", ptr("1.000")}}},
		},
		"volume to the end of a tier": {
			plans.Price{Model: "volume", Tiers: tiers},
			20,
			rating.Line{Overage: 20, Exact: "10", AmountMinor: 1000, Tiers: []rating.TierAmount{{ptr(int64(20)), "20", "10", "0.50", nil}}},
		},
		"volume, no unit": {plans.Price{Model: "volume", Tiers: tiers}, 0, rating.Line{Exact: "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want.Tiers == nil {
				c.want.Tiers = []rating.TierAmount{}
			}
			for _, s := range []rating.Span{{}, month} {
				if got := rate(t, c.price, 2, c.quantity, s); !reflect.DeepEqual(got, c.want) {
					t.Errorf("got  %+v\nwant %+v", got, c.want)
				}
			}
		})
	}
}

// A line is rounded once, half away from zero, to the minor unit of its currency.
func TestLinesAreRoundedOnce(t *testing.T) {
	for _, c := range []struct {
		unit     string
		quantity int64
		exponent int
		want     int64
	}{
		{"0.5", 1, 0, 1},
		{"0.5", 5, 0, 3}, // to even would be 2
		{"0.49", 1, 0, 0},
		{"1200", 1, 0, 1200},
		{"0.005", 1, 2, 1},
		{"0.025", 1, 2, 3}, // to even would be 2
		{"0.0049999", 1, 2, 0},
		{"0.004", 3, 2, 1}, // rounded by unit it would be 0
		{"0.0005", 1, 3, 1},
		{"1.2344", 1, 3, 1234},
		{"0.00005", 1, 4, 1},
		{"0.000049999999", 1, 4, 0},
	} {
		if got := rate(t, perUnit(c.unit), c.exponent, c.quantity, rating.Span{}).AmountMinor; got != c.want {
			t.Errorf("%d at %s, %d digits: %d, want %d", c.quantity, c.unit, c.exponent, got, c.want)
		}
	}
	tiers := plans.Price{Model: "graduated", Tiers: []plans.Tier{
		{UpTo: ptr(int64(1)), UnitPrice: "0.005"}, {UpTo: ptr(int64(2)), UnitPrice: "0.005"}, {UnitPrice: "0"},
	}}
	if got := rate(t, tiers, 2, 2, rating.Span{}).AmountMinor; got != 1 {
		t.Errorf("two tiers of half a cent: %d, want 1: the line is rounded, not its tiers", got)
	}
}

func TestLinesAreHeld(t *testing.T) {
	held := plans.Price{Model: "per_unit", UnitPrice: ptr("1"), Included: 10, MinimumMinor: ptr(int64(500)), MaximumMinor: ptr(int64(2000))}
	for _, c := range []struct {
		quantity int64
		span     rating.Span
		want     int64
		applied  string
	}{
		{0, month, 500, "minimum"},
		{14, month, 500, "minimum"},
		{15, month, 500, ""}, // what it costs anyway
		{16, month, 600, ""},
		{30, month, 2000, ""},
		{31, month, 2000, "maximum"},
		{-9, month, 500, "minimum"},
		{math.MaxInt64, month, 2000, "maximum"}, // it holds what would be too large
		{0, third, 166, "minimum"},              // P(20) − P(10) = 333 − 167
		{4, third, 166, "minimum"},
		{5, third, 200, ""},
		{9, third, 600, ""}, // 3 included: 6 − 3
		{10, third, 666, "maximum"},
		{99, third, 666, "maximum"},
	} {
		if got := rate(t, held, 2, c.quantity, c.span); got.AmountMinor != c.want || got.Applied != c.applied {
			t.Errorf("%d in %v: %d %s, want %d %s", c.quantity, c.span, got.AmountMinor, got.Applied, c.want, c.applied)
		}
	}
	// Rounding may leave the cut maximum below the cut minimum. P(t) of 1 is 1 from the half
	// on, and that of 2 from the first quarter on.
	narrow := plans.Price{Model: "per_unit", UnitPrice: ptr("1"), MinimumMinor: ptr(int64(1)), MaximumMinor: ptr(int64(2))}
	quarter := rating.Span{Start: 0, End: 4, From: 1, To: 2}
	if got := rate(t, narrow, 2, 5, quarter); got.AmountMinor != 0 || got.Applied != billing.AppliedMaximum {
		t.Errorf("the maximum does not count: %+v", got)
	}
	if got := rate(t, narrow, 2, 0, quarter); got.AmountMinor != 0 || got.Applied != "" {
		t.Errorf("a maximum is said to lower nothing: %+v", got)
	}
	// P(7) − P(6) of 47 is 11 − 9, and of 48 it is 11 − 10. The minimum lifts nothing to the maximum.
	crossed := plans.Price{Model: "per_unit", UnitPrice: ptr("0"), MinimumMinor: ptr(int64(47)), MaximumMinor: ptr(int64(48))}
	if got := rate(t, crossed, 2, 0, rating.Span{Start: 0, End: 30 * day, From: 6 * day, To: 7 * day}); got.AmountMinor != 1 ||
		got.Applied != billing.AppliedMinimum {
		t.Errorf("what lifted the amount is not said: %+v", got)
	}
	if got := rate(t, plans.Price{Model: "per_unit", UnitPrice: ptr("1"), MaximumMinor: ptr(int64(0))}, 2, 5, month).AmountMinor; got != 0 {
		t.Errorf("a maximum of 0 does not count: %d", got)
	}
}

// A price says what it was written with, to the last digit.
func TestPricesSayWhatTheyAre(t *testing.T) {
	tiers := []plans.Tier{{UnitPrice: "1"}}
	for _, c := range []struct {
		price plans.Price
		want  billing.Priced
	}{
		{perUnit("0.0500"), billing.Priced{UnitPrice: "0.0500"}},
		{plans.Price{Model: "package", PackageSize: ptr(int64(1000)), PackagePrice: ptr("2")}, billing.Priced{PackageSize: 1000, PackagePrice: "2"}},
		{plans.Price{Model: "graduated", Tiers: tiers}, billing.Priced{}},
		{plans.Price{Model: "volume", Tiers: tiers}, billing.Priced{}},
	} {
		if got := compile(t, c.price, 2).Priced(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.price.Model, got, c.want)
		}
	}
}

// Included units are cut, packages and tiers are not.
func TestLinesOfACutPeriod(t *testing.T) {
	pack := plans.Price{Model: "package", PackageSize: ptr(int64(3)), PackagePrice: ptr("3"), Included: 100}
	if got := rate(t, pack, 2, 37, third); got.Included != 33 || got.Overage != 4 || got.AmountMinor != 600 {
		t.Errorf("%+v", got)
	}
	tiers := plans.Price{Model: "graduated", Tiers: []plans.Tier{{UpTo: ptr(int64(3)), UnitPrice: "1"}, {UnitPrice: "2"}}}
	if got := rate(t, tiers, 2, 4, third); got.AmountMinor != 500 {
		t.Errorf("%+v", got)
	}
}

func TestTooLarge(t *testing.T) {
	full, unit := int64(math.MaxInt64), "0.000108420217"
	for _, c := range []struct {
		unit     string
		quantity int64
		exponent int
		want     int64 // 0: too large
	}{
		{"0.01", 1e15 - 1, 2, 1e15 - 1},
		{"0.01", 1e15, 2, 0},
		{"9999999999999.994", 1, 2, 1e15 - 1},
		{"9999999999999.995", 1, 2, 0},
		{"999999999999999.4", 1, 0, 1e15 - 1},
		{"999999999999999", 1, 4, 0},
		{"999999999999999.999999999999", full, 4, 0},
		{unit, full, 0, 999999997707527}, // 2⁶³−1 of it
		{"0", full, 2, -1},
	} {
		price := compile(t, perUnit(c.unit), c.exponent)
		got, err := price.Rate(c.quantity, rating.Span{})
		switch {
		case c.want == 0:
			if !errors.Is(err, rating.ErrTooLarge) || got.AmountMinor != 0 || got.Overage != c.quantity || got.Exact == "" {
				t.Errorf("%d at %s: %+v, %v", c.quantity, c.unit, got, err)
			}
		case err != nil || got.AmountMinor != max(c.want, 0):
			t.Errorf("%d at %s: %+v, %v, want %d", c.quantity, c.unit, got, err, c.want)
		}
	}
}

func TestCorrections(t *testing.T) {
	price := compile(t, plans.Price{
		Model: "volume", Included: 10, MinimumMinor: ptr(int64(100)),
		Tiers: []plans.Tier{{UpTo: ptr(int64(10)), UnitPrice: "1"}, {UnitPrice: "0.5"}},
	}, 2)
	for _, c := range []struct{ quantity, billed, noted, want int64 }{
		{13, 200, 0, 100},
		{11, 200, 0, -100},
		{12, 200, 0, 0},
		{21, 1000, 0, 550 - 1000}, // more units, and less to pay
		{6, 100, 0, 0},            // to the minimum, as it was
		{-30, 1000, 0, 100 - 1000},
		{15, 100, 0, 500 - 100},
		{math.MinInt64, 1000, 0, -900}, // rated from 0 on
		{11, 1000, 400, -600},          // credit notes took 400
		{11, 1000, 1000, 0},
		{11, 400, 400, 0}, // as it was left by the one before
		{15, 400, 400, 100},
	} {
		if got, err := price.Correction(c.quantity, c.billed, c.noted, month); err != nil || got.AmountMinor != c.want {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	for _, quantity := range []int64{math.MaxInt64, 1e15 + 1, 1e16} {
		if got, err := price.Correction(quantity, 100, 0, month); !errors.Is(err, rating.ErrTooLarge) {
			t.Errorf("%d: %+v, %v", quantity, got, err)
		}
	}
	// The period was cut: its included units are those of the part.
	if got, err := price.Correction(4, 34, 0, third); err != nil || got.AmountMinor != 100-34 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, exponent := range []int{-1, 5} {
		if _, err := rating.Compile(perUnit("1"), exponent); err == nil {
			t.Errorf("a currency of %d digits", exponent)
		}
	}
	for field, p := range map[string]plans.Price{
		"model":         {Model: "free"},
		"unit_price":    perUnit("-1"),
		"package_price": {Model: "package", PackageSize: ptr(int64(1))},
		"up_to":         {Model: "volume", Tiers: []plans.Tier{{UpTo: ptr(int64(1)), UnitPrice: "1"}}},
		"minimum_minor": {Model: "per_unit", UnitPrice: ptr("1"), MinimumMinor: ptr(int64(2)), MaximumMinor: ptr(int64(1))},
	} {
		if _, err := rating.Compile(p, 2); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// What a caller does with a price that was compiled changes nothing.
func TestCompiledPricesAreTheirOwn(t *testing.T) {
	from := plans.Price{
		Model: "graduated", MaximumMinor: ptr(int64(700)),
		Tiers: []plans.Tier{{UpTo: ptr(int64(5)), UnitPrice: "1", FlatPrice: ptr("0")}, {UnitPrice: "2"}},
	}
	price := compile(t, from, 2)
	*from.MaximumMinor, *from.Tiers[0].UpTo, *from.Tiers[0].FlatPrice, from.Tiers[1].UnitPrice = 1, 1, "9", "9"
	if got, err := price.Rate(6, month); err != nil || got.AmountMinor != 700 || *got.Tiers[0].UpTo != 5 || *got.Tiers[0].FlatPrice != "0" ||
		got.Tiers[1].UnitPrice != "2" {
		t.Errorf("%+v, %v", got, err)
	}
}
