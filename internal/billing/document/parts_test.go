package document_test

import (
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/document"
)

// A line of a cut period prints its part exactly, in the longest unit of time that can, on paper and in CSV. Tiers of a level that is
// not whole print all of its digits.
func TestPartsArePrinted(t *testing.T) {
	const hour = day / 24
	cut := func(from, to int64) *billing.Part {
		return &billing.Part{From: march + from, To: march + to, OfFrom: march, OfTo: march + 30*day}
	}
	level := billing.LineLevel{By: "average", Exact: "2.200000"}
	tiers := []billing.TierLine{
		{UpTo: new(int64(2)), Quantity: "2.000000", Amount: "8", UnitPrice: "4"}, {Quantity: "0.200000", Amount: "3.6", UnitPrice: "3", FlatPrice: new("3")},
	}
	least := new(int64(2000))
	for _, c := range []struct {
		line        billing.Line
		words, cell string
	}{
		{
			billing.Line{Kind: "usage", Level: level, Tiers: tiers, Part: cut(0, 889*hour/2)},
			"What was held on the average; Sum of the tiers × 444.5 of 720 hours; Up to 2: 2 × €4.00; Above 2: 0.2 × €3.00 and €3.00 flat",
			"up to 2: 2.000000 × 4 = 8; above 2: 0.200000 × 3 + 3 = 3.6",
		},
		{
			billing.Line{Kind: "usage", Level: level, Included: 1, Priced: billing.Priced{UnitPrice: "4"}, Part: cut(hour, 889*hour/2+hour)},
			"What was held on the average; 1.2 × €4.00 × 444.5 of 720 hours", "444.5 of 720 hours",
		},
		{
			billing.Line{Kind: "usage", Level: level, Priced: billing.Priced{PackageSize: 2, PackagePrice: "4"}, Part: cut(0, hour/60)},
			"What was held on the average; 2 packages of 2 × €4.00 × 1 of 43,200 minutes", "1 of 43,200 minutes",
		},
		{
			billing.Line{Kind: "usage", Level: level, Priced: billing.Priced{UnitPrice: "4"}, Applied: "minimum", WholeMinor: least, Part: cut(0, day)},
			"What was held on the average; 2.2 × €4.00 × 24 of 720 hours; Minimum of €20.00 × 24 of 720 hours applied", "24 of 720 hours",
		},
		{
			billing.Line{Kind: "usage", Quantity: 7, Priced: billing.Priced{UnitPrice: "4"}, Part: cut(day, 2*day)},
			"Of the full period: 24 of 720 hours, after the first 24; 7 × €4.00", "24 of 720 hours, after the first 24",
		},
		{
			billing.Line{Kind: "base", WholeMinor: least, AmountMinor: 67, Part: cut(1, day+1)},
			"€20.00 × 86,400 of 2,592,000 seconds, after the first 0.000001", "86,400 of 2,592,000 seconds, after the first 0.000001",
		},
		{billing.Line{Kind: "base", WholeMinor: least, AmountMinor: 2000}, "", ",2000,20.00"},
		{
			billing.Line{Kind: "unused", WholeMinor: least, AmountMinor: -60, Part: cut(29*day, 30*day)},
			"€20.00 × 24 of 720 hours, after the first 696; No more than €0.60 was left of it", "2000,20.00",
		},
		{
			billing.Line{Kind: "minimum", WholeMinor: least, AmountMinor: 60, Part: cut(0, day)},
			"Minimum of €20.00 × 24 of 720 hours, less €0.07 of base price and usage", "2000,20.00",
		},
		{
			billing.Line{
				Kind: "correction", Quantity: 30, Included: 20, Priced: billing.Priced{UnitPrice: "0.05"}, Part: cut(0, day), AmountMinor: 50,
				Before: &billing.Before{Quantity: 120, AmountMinor: 600, CreditedMinor: 100},
			},
			"150 instead of 120; Of the full period: 24 of 720 hours; 130 × €0.05; Less €6.00 billed before", "24 of 720 hours,,,120,600,6.00,100,1.00",
		},
		{
			billing.Line{
				Kind: "correction", Quantity: -115, Tiers: tiers[:1], Applied: "minimum", WholeMinor: least, Part: cut(0, day), AmountMinor: -440,
				Before: &billing.Before{Quantity: 120, AmountMinor: 600, CreditedMinor: 160},
			},
			"5 instead of 120; Of the full period: 24 of 720 hours; Minimum of €20.00 × 24 of 720 hours applied; " +
				"At least €1.60, the sum of credit notes; Less €6.00 billed before; Up to 2: 2 × €4.00",
			"24 of 720 hours,2000,20.00,120,600,6.00,160,1.60",
		},
		{billing.Line{Kind: "correction", OfLine: 3, AmountMinor: -60}, "", "0,EUR,-60,-0.60"},
	} {
		if got := strings.Join(document.How(&c.line, "EUR"), "; "); got != c.words {
			t.Errorf("%s:\n%s\nwant\n%s", c.line.Kind, got, c.words)
		}
		csv, err := document.CSV(&billing.Invoice{Currency: "EUR", Lines: []billing.Line{c.line}})
		if err != nil || !strings.Contains(string(csv), c.cell) {
			t.Errorf("%v; %q is not in %s", err, c.cell, csv)
		}
	}
}
