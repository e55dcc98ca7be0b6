package assembly_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
)

// Each rule of billing about which lines an invoice has. lines: see the function lines.
var lineRules = map[string]struct {
	input func(rapid.TB) assembly.Input
	lines string
}{
	"each price has a usage line, in the plan's order, at quantity 0 too": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, nil), 0, 30))
		in.Usage = map[string]int64{"a": 150, "unpriced": 9}
		return in
	}, "1 usage b 0-30 0/0 0\n2 usage a 0-30 150/100 500"},
	"base in arrears comes first": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, func(p *plans.PlanInput) { p.BasePriceMinor = 2900 }), 0, 30))
		in.Usage = map[string]int64{"b": 1001}
		return in
	}, "1 base 0-30 2900\n2 usage b 0-30 1001/0 1000\n3 usage a 0-30 0/100 0"},
	"base and included units are cut with the period, packages are not": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, func(p *plans.PlanInput) { p.BasePriceMinor = 100 }), 10, 15))
		in.Usage = map[string]int64{"a": 50, "b": 1}
		return in
	}, "1 base 10-15 17\n2 usage b 10-15 1/0 500\n3 usage a 10-15 50/17 330"},
	"minimum and maximum of a price are cut as the base": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, func(p *plans.PlanInput) {
			p.Prices[0].MinimumMinor, p.Prices[1].MaximumMinor = ptr(int64(900)), ptr(int64(300))
		}), 0, 10))
		in.Usage = map[string]int64{"a": 1000}
		return in
	}, "1 usage b 0-10 0/0 300\n2 usage a 0-10 1000/33 100"},
	"a price of the customer's own counts instead, and behind the plan's if the plan has none": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, nil), 0, 30))
		in.Terms.Period.Prices = map[string]plans.Price{
			"z": {Model: "per_unit", UnitPrice: ptr("1")}, "c": {Model: "per_unit", UnitPrice: ptr("2")}, "a": {Model: "per_unit", UnitPrice: ptr("0.01")},
		}
		in.Usage = map[string]int64{"a": 150, "c": 1, "z": 1}
		return in
	}, "1 usage b 0-30 0/0 0\n2 usage a 0-30 150/0 150\n3 usage c 0-30 1/0 200\n4 usage z 0-30 1/0 100"},
	"a sum below 0 is rated as 0": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, nil), 0, 30))
		in.Usage = map[string]int64{"a": -5}
		return in
	}, "1 usage b 0-30 0/0 0\n2 usage a 0-30 -5/100 0"},

	"the minimum lifts base and usage": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.MinimumMinor = 1000, 5000 }), 0, 30))
		in.Usage = map[string]int64{"a": 150}
		return in
	}, "1 base 0-30 1000\n2 usage b 0-30 0/0 0\n3 usage a 0-30 150/100 500\n4 minimum 0-30 3500"},
	"the minimum is cut like the base": {func(t rapid.TB) assembly.Input {
		return period(terms(version(t, func(p *plans.PlanInput) { p.MinimumMinor, p.Prices = 100, nil }), 10, 15))
	}, "1 minimum 10-15 17"},
	"a minimum that is reached has no line": {func(t rapid.TB) assembly.Input {
		return period(terms(version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.MinimumMinor, p.Prices = 500, 500, nil }), 0, 30))
	}, "1 base 0-30 500"},
	"the minimum counts base in advance, less what was unused, but not the next base": {func(t rapid.TB) assembly.Input {
		plan := version(t, func(p *plans.PlanInput) {
			p.BasePriceMinor, p.MinimumMinor, p.BaseIn, p.Prices = 3000, 6000, plans.InAdvance, nil
		})
		in := period(known(terms(plan, 0, 10), 30)) // base 1000, minimum 2000
		in.Advance = []assembly.Advance{{From: 0, To: 30 * day, PlanVersion: 3, LeftMinor: 3000}}
		in.Next = ptr(terms(plan, 10, 30))
		return in
	}, "1 minimum 0-10 1000\n2 unused 10-30 -2000\n3 base 10-30 2000"},
	"the minimum leaves corrections and charges": {func(t rapid.TB) assembly.Input {
		plan := version(t, func(p *plans.PlanInput) { p.MinimumMinor = 500 })
		in := period(terms(plan, 30, 60))
		in.Corrections = []assembly.Correction{{Meter: "a", Of: terms(version(t, nil), 0, 30), OfInvoice: "i", Counted: 100, Now: 110}}
		in.Charges = []billing.Charge{{ID: "c", Description: "Setup", AmountMinor: 700, At: 31 * day}}
		return in
	}, "1 usage b 30-60 0/0 0\n2 usage a 30-60 0/100 0\n3 minimum 30-60 500\n4 correction a 0-30 10/100 100\n5 charge 31-31 700"},

	"base in advance: an opening has the first one": {func(t rapid.TB) assembly.Input {
		return opening(terms(version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.BaseIn = 3000, plans.InAdvance }), 20, 30))
	}, "1 base 20-30 1000"},
	"base in advance: an opening goes to the known end, though a cut came since": {func(t rapid.TB) assembly.Input {
		return opening(known(terms(version(t, based(3000, plans.InAdvance)), 0, 5), 30))
	}, "1 base 0-30 3000"},
	"base in arrears: no opening": {func(t rapid.TB) assembly.Input {
		return opening(terms(version(t, based(3000, plans.InArrears)), 0, 30))
	}, ""},
	"base in advance: the invoice of a period holds the next one's": {func(t rapid.TB) assembly.Input {
		plan := version(t, based(3000, plans.InAdvance))
		in := period(terms(plan, 0, 30))
		in.Advance = []assembly.Advance{{To: 30 * day, LeftMinor: 3000}}
		in.Next = ptr(terms(plan, 30, 60))
		return in
	}, "1 base 30-60 3000"},
	"base in advance: the last invoice has none": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, based(3000, plans.InAdvance)), 0, 30))
		in.Advance = []assembly.Advance{{To: 30 * day, LeftMinor: 3000}}
		return in
	}, ""},
	"unused: a cut gives back P(known end) - P(cut)": {func(t rapid.TB) assembly.Input {
		in := period(known(terms(version(t, based(100, plans.InAdvance)), 0, 5), 30))
		in.Advance = []assembly.Advance{{To: 30 * day, LeftMinor: 100}}
		return in
	}, "1 unused 5-30 -83"},
	"unused: with an end known beforehand nothing is given back at it": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, based(3000, plans.InAdvance)), 0, 10))
		in.Advance = []assembly.Advance{{To: 10 * day, LeftMinor: 1000}}
		return in
	}, ""},
	"unused: only of what an invoice that is not void holds": {func(t rapid.TB) assembly.Input {
		return period(known(terms(version(t, based(3000, plans.InAdvance)), 0, 10), 30))
	}, ""},
	"unused: never more than credit notes left": {func(t rapid.TB) assembly.Input {
		in := period(known(terms(version(t, based(3000, plans.InAdvance)), 0, 10), 30))
		in.Advance = []assembly.Advance{{To: 30 * day, LeftMinor: 500}}
		return in
	}, "1 unused 10-30 -500"},
	"a period that became longer: the rest of the base is charged behind": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, based(3000, plans.InAdvance)), 0, 30))
		in.Terms.Period.KnownEnd = 10 * day
		in.Advance = []assembly.Advance{{To: 10 * day, LeftMinor: 1000}}
		return in
	}, "1 base 10-30 2000"},
	"what an invoice holds of the base counts, whatever end was known": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, based(3000, plans.InAdvance)), 0, 30))
		in.Advance = []assembly.Advance{{To: 10 * day, LeftMinor: 1000}}
		return in
	}, "1 base 10-30 2000"},
	"from advance to arrears: the unused part, and no base now": {func(t rapid.TB) assembly.Input {
		in := period(known(terms(version(t, based(3000, plans.InAdvance)), 0, 10), 30))
		in.Advance = []assembly.Advance{{To: 30 * day, LeftMinor: 3000}}
		in.Next = ptr(terms(version(t, based(600, plans.InArrears)), 10, 30))
		return in
	}, "1 unused 10-30 -2000"},
	"from arrears to advance: the cut period's own base and the new plan's rest": {func(t rapid.TB) assembly.Input {
		in := period(known(terms(version(t, based(600, plans.InArrears)), 0, 10), 30))
		in.Next = ptr(terms(version(t, based(3000, plans.InAdvance)), 10, 30))
		return in
	}, "1 base 0-10 200\n2 base 10-30 2000"},
	"a cut at the start: base of the terms that were replaced is given back whole, the new one's is charged": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, based(6000, plans.InAdvance)), 0, 30))
		in.Replaced = []assembly.Advance{{From: 0, To: 30 * day, PlanVersion: 1, LeftMinor: 3000}}
		in.TermsReplaced = true
		return in
	}, "1 base 0-30 6000\n2 unused 0-30 -3000"},

	"a trial is rated 0: usage, base, minimum": {func(t rapid.TB) assembly.Input {
		in := period(trial(terms(version(t, func(p *plans.PlanInput) {
			p.BasePriceMinor, p.MinimumMinor, p.Prices[0].MinimumMinor = 1000, 5000, ptr(int64(100))
		}), 0, 15)))
		in.Usage = map[string]int64{"a": 10_000, "b": 1}
		return in
	}, "1 usage b 0-15 1/0 0\n2 usage a 0-15 10000/50 0"},
	"a trial is rated 0: its corrections, but not charges": {func(t rapid.TB) assembly.Input {
		in := period(trial(terms(version(t, free), 15, 30)))
		in.Corrections = []assembly.Correction{{Meter: "a", Of: trial(terms(version(t, nil), 0, 15)), OfInvoice: "i", Counted: 0, Now: 1000}}
		in.Charges = []billing.Charge{{ID: "c", Description: "Setup", AmountMinor: 700, At: 20 * day}}
		return in
	}, "1 charge 20-20 700"},
	"no opening is made for a trial": {func(t rapid.TB) assembly.Input {
		return opening(trial(terms(version(t, based(3000, plans.InAdvance)), 0, 15)))
	}, ""},
	"a trial's last invoice holds the base in advance that follows": {func(t rapid.TB) assembly.Input {
		plan := version(t, based(3000, plans.InAdvance))
		in := period(trial(terms(plan, 0, 15)))
		in.Next = ptr(terms(plan, 15, 30))
		return in
	}, "1 base 15-30 1500"},
	"an ordinary boundary in a trial: no base for the trial that follows": {func(t rapid.TB) assembly.Input {
		plan := version(t, based(3000, plans.InAdvance))
		in := period(trial(terms(plan, 0, 30)))
		in.Next = ptr(trial(terms(plan, 30, 40)))
		return in
	}, ""},
	"a draft of an opening whose period became a trial has its base no more": {func(t rapid.TB) assembly.Input {
		in := opening(trial(terms(version(t, based(3000, plans.InAdvance)), 0, 15)))
		in.Fixed = []billing.Line{{Kind: billing.LineBase, To: 30 * day, AmountMinor: 3000}, {Kind: billing.LineCharge, AmountMinor: 4}}
		return in
	}, "1 charge 0-0 4"},

	"a correction is R(q+d) - R(q) by that period's own prices": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, free), 30, 60))
		of := terms(version(t, nil), 0, 15) // 50 units included
		in.Corrections = []assembly.Correction{
			{Meter: "a", Of: of, OfInvoice: "i", Counted: 40, Now: 60},
			{Meter: "b", Of: of, OfInvoice: "i", Counted: 1001, Now: 1000, BilledMinor: 1000},
			{Meter: "unpriced", Of: of, OfInvoice: "i", Counted: 0, Now: 9},
		}
		return in
	}, "1 correction a 0-15 20/50 100\n2 correction b 0-15 -1/0 -500"},
	"a correction below 0 is rated as 0": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, free), 30, 60))
		in.Corrections = []assembly.Correction{{Meter: "a", Of: terms(version(t, nil), 0, 30), OfInvoice: "i", Counted: 150, Now: -1000, BilledMinor: 500}}
		return in
	}, "1 correction a 0-30 -1150/100 -500"},
	"a correction of 0 is left out": {func(t rapid.TB) assembly.Input {
		in := period(terms(version(t, free), 30, 60))
		in.Corrections = []assembly.Correction{{Meter: "a", Of: terms(version(t, nil), 0, 30), OfInvoice: "i", Counted: 10, Now: 20}}
		return in
	}, ""},
	"the order is base, usage, minimum, unused, next base, corrections, charges": {everything, "1 base 0-10 1000\n2 usage b 0-10 0/0 0\n3 usage a 0-10 0/33 0\n" +
		"4 minimum 0-10 1000\n5 unused 0-30 -50\n6 base 10-30 2000\n7 correction a 0-30 10/100 100\n8 charge 3-3 700"},
	"a stored draft keeps its corrections, charges and next base; usage follows adjustments": {func(t rapid.TB) assembly.Input {
		in := everything(t)
		stored := assemble(t, in).Invoice.Lines
		in.Fixed, in.Corrections, in.Charges = stored, nil, nil
		in.Next = ptr(terms(version(t, based(9, plans.InAdvance)), 10, 20))
		in.Usage = map[string]int64{"a": 133}
		return in
	}, "1 base 0-10 1000\n2 usage b 0-10 0/0 0\n3 usage a 0-10 133/33 1000\n" +
		"4 unused 0-30 -50\n5 base 10-30 2000\n6 correction a 0-30 10/100 100\n7 charge 3-3 700"},
}

// everything is an input that has lines of each kind.
func everything(t rapid.TB) assembly.Input {
	in := period(known(terms(version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.MinimumMinor = 3000, 6000 }), 0, 10), 30))
	in.Next = ptr(terms(version(t, based(3000, plans.InAdvance)), 10, 30))
	in.Replaced = []assembly.Advance{{From: 0, To: 30 * day, PlanVersion: 1, LeftMinor: 50}}
	in.Corrections = []assembly.Correction{{Meter: "a", Of: terms(version(t, nil), 0, 30), OfInvoice: "i", Counted: 100, Now: 110}}
	in.Charges = []billing.Charge{{ID: "c", Description: "Setup", AmountMinor: 700, At: 3 * day}}
	return in
}

func TestLines(t *testing.T) {
	for name, rule := range lineRules {
		t.Run(name, func(t *testing.T) {
			r := assemble(t, rule.input(t))
			same(t, "lines", lines(&r.Invoice), rule.lines)
			same(t, "empty", r.Empty, rule.lines == "")
			same(t, "held", r.Invoice.Held, "")
		})
	}
}

func TestWhatAnInvoiceSaysOfItsPeriod(t *testing.T) {
	in := everything(t)
	in.Terms.Period.Chain, in.Terms.Period.N = 2, 5
	in.Seller = billing.Seller{Key: "default", Name: "We", Prefix: "Q-"}
	in.Account.Buyer = billing.Buyer{Name: "They"}
	inv := assemble(t, in).Invoice
	if inv.Kind != billing.KindPeriod || inv.Status != billing.StatusDraft || inv.ID != "" || inv.Number != "" ||
		inv.Chain != 2 || inv.N != 5 || inv.PeriodStart != 0 || inv.PeriodEnd != 10*day || inv.Customer != 11 || inv.Currency != "USD" ||
		inv.PlanID != 7 || inv.PriceVersion != 3 || inv.Seller.Name != "We" || inv.Buyer.Name != "They" || inv.DueDays != 14 {
		t.Errorf("%+v", inv)
	}
	for i, want := range []int{3, 3, 3, 3, 1, 3, 3, 3} {
		same(t, inv.Lines[i].Kind+": plan_version", inv.Lines[i].PlanVersion, want)
	}
	same(t, "the corrected invoice", inv.Lines[6].OfInvoice, "i")
	in.Kind = billing.KindOpening
	same(t, "an opening's end is the one that was known", assemble(t, in).Invoice.PeriodEnd, 30*day)
}

// What cannot be billed is held, with the meter or the total named.
func TestHeld(t *testing.T) {
	costly := func(p *plans.PlanInput) { p.Prices[1].UnitPrice = ptr("999999999999") }
	for name, held := range map[string]struct {
		input func(in *assembly.Input)
		says  string
	}{
		"a count at 2⁶³−1": {func(in *assembly.Input) { in.Usage = map[string]int64{"a": math.MaxInt64} }, "meter a"},
		"a count at −2⁶³":  {func(in *assembly.Input) { in.Usage = map[string]int64{"a": math.MinInt64} }, "meter a"},
		"a count in a trial": {func(in *assembly.Input) {
			in.Terms.Period.Trial = true
			in.Usage = map[string]int64{"b": math.MaxInt64}
		}, "meter b"},
		"a line of 10¹⁵":               {func(in *assembly.Input) { in.Terms.Plan = version(t, costly); in.Usage = map[string]int64{"a": 111} }, "meter a"},
		"a charge of 10¹⁵":             {func(in *assembly.Input) { in.Charges = []billing.Charge{{AmountMinor: 1e15}} }, "total"},
		"charges that add up to 10¹⁵":  {func(in *assembly.Input) { in.Charges = []billing.Charge{{AmountMinor: 6e14}, {AmountMinor: 4e14}} }, "total"},
		"charges that add up to −10¹⁵": {func(in *assembly.Input) { in.Charges = []billing.Charge{{AmountMinor: -6e14}, {AmountMinor: -4e14}} }, "total"},
		"a tax that lifts the total": {func(in *assembly.Input) {
			in.Charges = []billing.Charge{{AmountMinor: 6e14}}
			in.Account.Taxes = vat("100", false)
		}, "total"},
		"a correction whose count is full": {func(in *assembly.Input) {
			in.Corrections = []assembly.Correction{{Meter: "b", Of: in.Terms, Now: math.MaxInt64}}
		}, "correction of meter b"},
		"a correction of 64 bits": {func(in *assembly.Input) {
			in.Corrections = []assembly.Correction{{Meter: "b", Of: in.Terms, Counted: -10, Now: math.MaxInt64 - 5}}
		}, "correction of meter b"},
	} {
		t.Run(name, func(t *testing.T) {
			in := period(terms(version(t, nil), 0, 30))
			in.Credits = []billing.Credit{{ID: "c", LeftMinor: 100, Currency: "USD"}}
			held.input(&in)
			r := assemble(t, in)
			if !contains(r.Invoice.Held, held.says) {
				t.Errorf("held: %q, want a word on %q", r.Invoice.Held, held.says)
			}
			if r.Empty || len(r.Applied) > 0 || r.CarriedMinor != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// What is just small enough is billed.
func TestNotHeld(t *testing.T) {
	in := period(terms(version(t, nil), 0, 30))
	in.Usage = map[string]int64{"a": math.MaxInt64 - 1}
	in.Terms.Period.Prices = map[string]plans.Price{"a": {Model: "per_unit", UnitPrice: ptr("0")}}
	in.Charges = []billing.Charge{{AmountMinor: 1e15 - 1}}
	r := assemble(t, in)
	same(t, "held", r.Invoice.Held, "")
	same(t, "total", r.Invoice.TotalMinor, 1e15-1)
}
