package assembly_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

var requests = plans.Meter{Key: "a", Name: "API calls", Unit: "request"}

// The preview of an adjustment, and the quota endpoint, show the very line of the invoice.
func TestTheUsageLineAloneIsThatOfTheInvoice(t *testing.T) {
	of := terms(version(t, func(in *plans.PlanInput) {
		in.Prices[1] = plans.Price{Meter: "a", Model: "graduated", Included: 30, Tiers: []plans.Tier{
			{UpTo: ptr(int64(10)), UnitPrice: "1"}, {UnitPrice: "0.005", FlatPrice: ptr("2")},
		}}
	}), 0, 10)
	line, ok, err := of.UsageLine(requests, 12_345)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	in := period(of)
	in.Meters, in.Usage = map[string]plans.Meter{"a": requests}, map[string]int64{"a": 12_345}
	line.N = 2
	if got := assemble(t, in).Invoice.Lines[1]; !reflect.DeepEqual(got, line) {
		t.Errorf("%+v\nwant\n%+v", got, line)
	}
	same(t, "included", line.Included, int64(10))
	if want := []billing.TierLine{
		{UpTo: ptr(int64(10)), Quantity: "10", Amount: "10", UnitPrice: "1"},
		{Quantity: "12325", Amount: "63.625", UnitPrice: "0.005", FlatPrice: ptr("2")},
	}; !reflect.DeepEqual(line.Tiers, want) {
		t.Errorf("tiers %+v", line.Tiers)
	}
	same(t, "amount", line.AmountMinor, int64(7363))
	same(t, "the price of all units", line.Priced, billing.Priced{})
	if _, ok, err := of.UsageLine(plans.Meter{Key: "unpriced"}, 1); ok || err != nil {
		t.Errorf("a meter without a price: %v, %v", ok, err)
	}
	if line, ok, err := of.UsageLine(requests, math.MaxInt64); !ok || !errors.Is(err, rating.ErrTooLarge) || line.Quantity != math.MaxInt64 {
		t.Errorf("a full count: %v, %v, %v", line, ok, err)
	}
	of = trial(of)
	line, _, _ = of.UsageLine(requests, 12_345)
	if line.AmountMinor != 0 || line.Quantity != 12_345 || line.Included != 10 || len(line.Tiers) != 0 || line.Tiers == nil ||
		line.Priced != (billing.Priced{}) || line.Applied != "" {
		t.Errorf("a trial: %+v", line)
	}
}

// The preview of an adjustment to a closed period shows the very correction.
func TestTheCorrectionAloneIsThatOfTheInvoice(t *testing.T) {
	c := assembly.Correction{Meter: "a", Of: terms(version(t, nil), 0, 30), OfInvoice: "i", OfNumber: "Q-17", Counted: 150, Now: 145, BilledMinor: 500}
	line, ok, err := assembly.CorrectionLine(c, requests)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	in := period(terms(version(t, free), 30, 60))
	in.Meters, in.Corrections = map[string]plans.Meter{"a": requests}, []assembly.Correction{c}
	line.N = 1
	if got := assemble(t, in).Invoice.Lines[0]; !reflect.DeepEqual(got, line) {
		t.Errorf("%+v\nwant\n%+v", got, line)
	}
	same(t, "amount", line.AmountMinor, int64(-50))
	same(t, "price", line.Priced, billing.Priced{UnitPrice: "0.10"})
	c.Meter = "unpriced"
	if _, ok, err := assembly.CorrectionLine(c, requests); ok || err != nil {
		t.Errorf("a meter without a price: %v, %v", ok, err)
	}
}

func TestDescriptions(t *testing.T) {
	plan := terms(version(t, nil), 0, 30)
	usage := func(of assembly.Terms, meter plans.Meter, quantity int64) string {
		line, _, _ := of.UsageLine(meter, quantity)
		return line.Description
	}
	same(t, "usage", usage(plan, requests, 1_234_567), "API calls: 1,234,567 × request")
	same(t, "without a unit", usage(plan, plans.Meter{Key: "a"}, 999), "a: 999 units")
	same(t, "one", usage(plan, plans.Meter{Key: "a"}, 1), "a: 1 unit")
	same(t, "negative", usage(plan, plans.Meter{Key: "a"}, -123_456), "a: -123,456 units")
	same(t, "the least", usage(plan, plans.Meter{Key: "a"}, math.MinInt64), "a: -9,223,372,036,854,775,808 units")
	same(t, "a trial", usage(trial(plan), requests, 5), "API calls: 5 × request, trial")
	line, _, _ := assembly.CorrectionLine(assembly.Correction{Meter: "a", Of: plan, OfInvoice: "i", OfNumber: "Q-17", Now: -5}, requests)
	same(t, "a correction", line.Description, "Correction of invoice Q-17, API calls: -5 × request")
	in := everything(t)
	in.Advance = []assembly.Advance{{To: 30 * day, LeftMinor: 9000}}
	in.Terms.Plan = version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.BaseIn, p.MinimumMinor = 3000, plans.InAdvance, 9000 })
	want := []string{
		"b: 0 units", "a: 0 units", "Difference to the minimum price, Pro", "Unused base price, Pro", "Unused base price, changed at once",
		"Base price in advance, Pro", "Correction of invoice i, a: 10 units", "Setup",
	}
	for i, line := range assemble(t, in).Invoice.Lines {
		same(t, "description", line.Description, want[i])
	}
	same(t, "base", assemble(t, everything(t)).Invoice.Lines[0].Description, "Base price, Pro")
}
