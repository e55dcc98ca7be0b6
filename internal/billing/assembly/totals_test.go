package assembly_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/rating"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

// Each rule of billing about what an invoice comes to. taxes are written "percent base tax".
func TestTotals(t *testing.T) {
	two := func(inclusive bool) []billing.TaxRate {
		return []billing.TaxRate{{Name: "State", Percent: "6", Inclusive: inclusive}, {Name: "City", Percent: "2.25", Inclusive: inclusive}}
	}
	for name, rule := range map[string]struct {
		amounts []int64
		taxes   []billing.TaxRate
		sums    string
		each    string
		carried int64
	}{
		"without taxes the total is the subtotal":          {[]int64{1000, -300}, nil, "700 + 0 = 700 - 0 = 700", "", 0},
		"an exclusive tax is added":                        {[]int64{1000}, vat("19", false), "1000 + 190 = 1190 - 0 = 1190", "19 1000 190", 0},
		"an inclusive tax lies within":                     {[]int64{1190}, vat("19", true), "1190 + 190 = 1190 - 0 = 1190", "19 1000 190", 0},
		"exclusive taxes are rounded per rate":             {[]int64{1010}, two(false), "1010 + 84 = 1094 - 0 = 1094", "6 1010 61,2.25 1010 23", 0},
		"inclusive taxes divide the rest":                  {[]int64{1010}, two(true), "1010 + 77 = 1010 - 0 = 1010", "6 933 56,2.25 933 21", 0},
		"tax is on the whole subtotal":                     {[]int64{3, 3}, vat("10", false), "6 + 1 = 7 - 0 = 7", "10 6 1", 0},
		"a negative subtotal is taxed as its absolute one": {[]int64{-1005}, vat("10", false), "-1005 + -101 = -1106 - 0 = 0", "10 -1005 -101", 1106},
		"a negative subtotal holds inclusive tax likewise": {[]int64{-1190}, vat("19", true), "-1190 + -190 = -1190 - 0 = 0", "19 -1000 -190", 1190},
		"a negative total is due 0, and becomes a credit":  {[]int64{100, -500}, nil, "-400 + 0 = -400 - 0 = 0", "", 400},
		"a total of 0 with taxes has lines of tax":         {[]int64{100, -100}, vat("19", false), "0 + 0 = 0 - 0 = 0", "19 0 0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := charged(t, rule.amounts...)
			in.Account.Taxes = rule.taxes
			r := assemble(t, in)
			same(t, "sums", sums(&r.Invoice), rule.sums)
			same(t, "taxes", taxesOf(&r.Invoice), rule.each)
			same(t, "carried", r.CarriedMinor, rule.carried)
			for _, tax := range r.Invoice.Taxes {
				same(t, "inclusive", tax.Inclusive, rule.taxes[0].Inclusive)
			}
		})
	}
}

var bad = map[string]plans.Price{"a": {Model: "per_unit"}}

func taxesOf(inv *billing.Invoice) string {
	var each []string
	for _, tax := range inv.Taxes {
		each = append(each, fmt.Sprintf("%s %d %d", tax.Percent, tax.BaseMinor, tax.TaxMinor))
	}
	return strings.Join(each, ",")
}

func TestTermsThatNobodyMayHave(t *testing.T) {
	in := charged(t, 1)
	in.Account.Taxes = []billing.TaxRate{{Percent: "1"}, {Percent: "1", Inclusive: true}}
	if _, err := assembly.Assemble(in); !errors.Is(err, rating.ErrMixedTaxes) {
		t.Error(err)
	}
	in = period(terms(version(t, nil), 0, 30))
	in.Terms.Period.Prices = bad
	if _, err := assembly.Assemble(in); err == nil || !contains(err.Error(), "price of a") {
		t.Error(err)
	}
	in = charged(t)
	in.Corrections = []assembly.Correction{{Meter: "a", Of: assembly.Terms{Plan: version(t, nil), Period: billing.Period{Prices: bad}}, Now: 1}}
	if _, err := assembly.Assemble(in); err == nil || !contains(err.Error(), "price of a") {
		t.Error(err)
	}
	document := *version(t, nil).Document
	document.Currency = "XAU"
	if _, err := assembly.Compile("gold", 1, &document); err == nil {
		t.Error("a plan in gold is compiled")
	}
	document = *version(t, nil).Document
	document.Prices = append(document.Prices[:1:1], bad["a"])
	if _, err := assembly.Compile("bad", 1, &document); err == nil {
		t.Error("a bad price is compiled")
	}
}

func TestFinalize(t *testing.T) {
	in := charged(t, 1000)
	in.Seller.Prefix = "Q-"
	draft := assemble(t, in).Invoice
	inv := finalized(t, draft, 42, 31*day+5)
	if inv.Number != "Q-42" || inv.Status != billing.StatusFinalized || *inv.FinalizedAt != 31*day+5 || *inv.DueAt != 45*day+5 {
		t.Errorf("%+v", inv)
	}
	same(t, "the draft is as it was", draft.Number+draft.Status, billing.StatusDraft)
	for _, amount := range []int64{0, -5} {
		free := assemble(t, charged(t, amount)).Invoice
		same(t, "what has nothing due is paid at once", finalized(t, free, 1, 0).Status, billing.StatusPaid)
	}
	in.Credits = []billing.Credit{{ID: "c", LeftMinor: 1000, Currency: "USD"}}
	same(t, "and so is what credits pay", finalized(t, assemble(t, in).Invoice, 1, 0).Status, billing.StatusPaid)
}

// An invoice is due calendar days later: at the same wall clock of the customer's zone, by the rule for jumps.
func TestDueByTheCalendar(t *testing.T) {
	for name, c := range map[string]struct {
		zone string
		days int
		at   string
		due  string
	}{
		"without a jump":                        {"Europe/Berlin", 14, "2026-02-01T00:00:10Z", "2026-02-15T00:00:10Z"},
		"a day of 23 hours lies between":        {"Europe/Berlin", 31, "2026-03-01T00:00:10Z", "2026-03-31T23:00:10Z"},
		"a day of 25 hours lies between":        {"America/New_York", 13, "2026-10-25T16:30:00.000001Z", "2026-11-07T17:30:00.000001Z"},
		"no zone is UTC":                        {"", 31, "2026-03-01T00:00:10Z", "2026-04-01T00:00:10Z"},
		"the clock jumps over that time":        {"Europe/Berlin", 1, "2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z"},
		"the clock shows that time twice":       {"Europe/Berlin", 1, "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},
		"no days, at a time that it had before": {"Europe/Berlin", 0, "2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			draft := assemble(t, charged(t, 1000)).Invoice
			draft.Zone, draft.DueDays = c.zone, c.days
			inv := finalized(t, draft, 1, micros(t, c.at))
			same(t, "due", time.UnixMicro(*inv.DueAt).UTC().Format(time.RFC3339Nano), c.due)
		})
	}
	draft := assemble(t, charged(t, 1000)).Invoice
	draft.Zone = "Nowhere/Land"
	if _, err := assembly.Finalize(draft, 1, 0); !errors.Is(err, calendar.ErrUnknownZone) {
		t.Error(err)
	}
}

func micros(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}
