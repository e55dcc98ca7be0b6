package rating_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing/rating"
)

func taxes(t testing.TB, list ...rating.Tax) *rating.Taxes {
	t.Helper()
	compiled, err := rating.NewTaxes(list)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func exclusive(percent string) rating.Tax { return rating.Tax{Name: percent, Percent: percent} }

func inclusive(percent string) rating.Tax {
	return rating.Tax{Name: percent, Percent: percent, Inclusive: true}
}

func TestTaxes(t *testing.T) {
	for _, c := range []struct {
		list     []rating.Tax
		subtotal int64
		base     int64
		taxes    []int64
		total    int64
	}{
		{nil, 1000, 0, nil, 1000},
		{[]rating.Tax{exclusive("19")}, 1000, 1000, []int64{190}, 1190},
		{[]rating.Tax{exclusive("0")}, 1000, 1000, []int64{0}, 1000},
		{[]rating.Tax{exclusive("100")}, 1000, 1000, []int64{1000}, 2000},
		{[]rating.Tax{exclusive("2.5")}, 100, 100, []int64{3}, 103}, // to even would be 2
		{[]rating.Tax{exclusive("2.5"), exclusive("2.5")}, 100, 100, []int64{3, 3}, 106},
		{[]rating.Tax{exclusive("0.000001")}, 50_000_000, 50_000_000, []int64{1}, 50_000_001},
		{[]rating.Tax{exclusive("19")}, -1050, -1050, []int64{-200}, -1250}, // −199.5, away from zero
		{[]rating.Tax{exclusive("19")}, 0, 0, []int64{0}, 0},
		{[]rating.Tax{inclusive("19")}, 1190, 1000, []int64{190}, 1190},
		{[]rating.Tax{inclusive("19")}, 100, 84, []int64{16}, 100},
		{[]rating.Tax{inclusive("100")}, 1, 1, []int64{0}, 1},                     // net of a half
		{[]rating.Tax{inclusive("5"), inclusive("5")}, 11, 10, []int64{1, 0}, 11}, // a tie: the earlier
		{[]rating.Tax{inclusive("5"), inclusive("7")}, 9, 8, []int64{0, 1}, 9},    // the largest remainder
		{[]rating.Tax{inclusive("5"), inclusive("5"), inclusive("10")}, 120, 100, []int64{5, 5, 10}, 120},
		{[]rating.Tax{inclusive("5"), inclusive("5")}, -11, -10, []int64{-1, 0}, -11},
		{[]rating.Tax{inclusive("0"), inclusive("0")}, 11, 11, []int64{0, 0}, 11},
		{[]rating.Tax{inclusive("0"), inclusive("10")}, 11, 10, []int64{0, 1}, 11},
	} {
		t.Run(fmt.Sprintf("%v of %d", c.list, c.subtotal), func(t *testing.T) {
			want := rating.Taxed{SubtotalMinor: c.subtotal, TotalMinor: c.total, Taxes: []rating.TaxAmount{}}
			for i, tax := range c.taxes {
				want.Taxes = append(want.Taxes, rating.TaxAmount{Name: c.list[i].Name, Percent: c.list[i].Percent, BaseMinor: c.base, TaxMinor: tax})
				want.TaxMinor += tax
			}
			if got, err := taxes(t, c.list...).On(c.subtotal); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
			}
		})
	}
	if got, err := (*rating.Taxes)(nil).On(-5); err != nil ||
		!reflect.DeepEqual(got, rating.Taxed{SubtotalMinor: -5, TotalMinor: -5, Taxes: []rating.TaxAmount{}}) {
		t.Errorf("without taxes: %+v, %v", got, err)
	}
}

func TestTaxesTooLarge(t *testing.T) {
	for _, c := range []struct {
		tax      rating.Tax
		subtotal int64
	}{
		{inclusive("19"), rating.MaxMinor + 1},
		{inclusive("19"), math.MinInt64},
		{exclusive("19"), 9e14},
		{exclusive("19"), -9e14},
	} {
		if got, err := taxes(t, c.tax).On(c.subtotal); !errors.Is(err, rating.ErrTooLarge) {
			t.Errorf("%d: %+v, %v", c.subtotal, got, err)
		}
	}
	if got, err := taxes(t, inclusive("19")).On(rating.MaxMinor); err != nil || got.TotalMinor != rating.MaxMinor {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range [][2]int64{{9e14, 0}, {8e14, 1e14}, {math.MaxInt64, 1}, {1, math.MaxInt64}} {
		if got, err := taxes(t, exclusive("19")).CreditNote(c[0], c[1]); !errors.Is(err, rating.ErrTooLarge) {
			t.Errorf("%v: %+v, %v", c, got, err)
		}
	}
}

func TestPercents(t *testing.T) {
	for _, good := range []string{"0", "19", "100", "8.875", "0.000001", "100.000000", "007", "00.5"} {
		if _, err := rating.NewTaxes([]rating.Tax{exclusive(good)}); err != nil || !rating.ValidPercent(good) {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", ".", "5.", ".5", "-1", "+1", "1e1", "1,5", " 1", "1 ", "0x1", "1_0", "100.000001", "101", "0100", "0.0000001",
		"1.2.3", "1.+1", "NaN", "１",
	} {
		if _, err := rating.NewTaxes([]rating.Tax{exclusive(bad)}); !errors.Is(err, rating.ErrPercent) || rating.ValidPercent(bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, mixed := range [][]rating.Tax{{exclusive("1"), inclusive("1")}, {inclusive("0"), inclusive("1"), exclusive("1")}} {
		if _, err := rating.NewTaxes(mixed); !errors.Is(err, rating.ErrMixedTaxes) {
			t.Errorf("%v: %v", mixed, err)
		}
	}
}

// Each note takes the tax of what was credited with it, less that of what was before.
func TestCreditNotes(t *testing.T) {
	for _, c := range []struct {
		tax                rating.Tax
		credited, now      int64
		base, taxed, total int64
	}{
		{exclusive("19"), 0, 1000, -1000, -190, -1190},
		{exclusive("50"), 0, 1, -1, -1, -2}, // a half
		{exclusive("50"), 1, 1, -1, 0, -1},  // and the other one: 1 − 1
		{inclusive("19"), 0, 1190, -1000, -190, -1190},
		{inclusive("100"), 0, 1, -1, 0, -1},
		{inclusive("100"), 1, 1, 0, -1, -1},
		{exclusive("19"), 500, 0, 0, 0, 0},
	} {
		want := rating.Taxed{SubtotalMinor: -c.now, Taxes: []rating.TaxAmount{{c.tax.Name, c.tax.Percent, c.base, c.taxed}}, TaxMinor: c.taxed, TotalMinor: c.total}
		if got, err := taxes(t, c.tax).CreditNote(c.credited, c.now); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v, %v, want %+v", c, got, err, want)
		}
	}
}

func drawTaxes(t *rapid.T) (list []rating.Tax) {
	inclusive := rapid.Bool().Draw(t, "inclusive")
	percent := rapid.OneOf(rapid.StringMatching(`[0-9]{1,2}(\.[0-9]{1,6})?`), rapid.SampledFrom([]string{"0", "5", "10", "100"}))
	for range rapid.IntRange(0, 5).Draw(t, "rates") {
		list = append(list, rating.Tax{Name: "tax", Percent: percent.Draw(t, "percent"), Inclusive: inclusive})
	}
	return list
}

func TestTaxesAreThoseOfTheNaiveWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawTaxes(t)
		subtotal := rapid.OneOf(rapid.Int64Range(-500, 500), rapid.Int64Range(-1e14, 1e14)).Draw(t, "subtotal")
		compiled, err := rating.NewTaxes(list)
		if err != nil {
			t.Fatal(err)
		}
		got, err := compiled.On(subtotal)
		if err != nil {
			t.Fatal(err)
		}
		base, each := naiveTaxes(list, subtotal)
		all := int64(0)
		for i, tax := range each {
			if got.Taxes[i].TaxMinor != tax || got.Taxes[i].BaseMinor != base {
				t.Fatalf("rate %d: %+v, want %d of %d", i, got.Taxes[i], tax, base)
			}
			all += tax
		}
		total := subtotal + all
		if len(list) > 0 && list[0].Inclusive {
			total = subtotal
			if base+all != subtotal {
				t.Fatalf("%d and %d are not %d", base, all, subtotal)
			}
		}
		if len(got.Taxes) != len(list) || got.SubtotalMinor != subtotal || got.TaxMinor != all || got.TotalMinor != total {
			t.Fatalf("%+v, want tax %d and total %d", got, all, total)
		}
	})
}

// However an invoice is credited, the notes over all of it give back what it took.
func TestCreditNotesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compiled, err := rating.NewTaxes(drawTaxes(t))
		if err != nil {
			t.Fatal(err)
		}
		subtotal := rapid.Int64Range(0, 1e6).Draw(t, "subtotal")
		all, err := compiled.On(subtotal)
		if err != nil {
			t.Fatal(err)
		}
		for credited := int64(0); credited < subtotal; {
			now := rapid.OneOf(rapid.Just(subtotal-credited), rapid.Int64Range(1, subtotal-credited)).Draw(t, "now")
			note, err := compiled.CreditNote(credited, now)
			if err != nil || note.SubtotalMinor != -now {
				t.Fatalf("%+v, %v", note, err)
			}
			for i := range note.Taxes {
				all.Taxes[i].TaxMinor += note.Taxes[i].TaxMinor
				all.Taxes[i].BaseMinor += note.Taxes[i].BaseMinor
			}
			all.TaxMinor, all.TotalMinor, credited = all.TaxMinor+note.TaxMinor, all.TotalMinor+note.TotalMinor, credited+now
		}
		for _, tax := range all.Taxes {
			if tax.TaxMinor != 0 || tax.BaseMinor != 0 {
				t.Fatalf("%+v is left", all)
			}
		}
		if all.TaxMinor != 0 || all.TotalMinor != 0 {
			t.Fatalf("%+v is left", all)
		}
	})
}

func BenchmarkTaxes(b *testing.B) {
	for _, tax := range []rating.Tax{exclusive("19"), inclusive("19")} {
		compiled := taxes(b, tax)
		b.Run(fmt.Sprintf("inclusive=%v", tax.Inclusive), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compiled.On(123_456); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
