package assembly_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
)

// Instants of the tests are in days, and a whole period has 30 of them.
const (
	day   = int64(24 * 60 * 60 * 1e6)
	month = 30
)

func ptr[T any](v T) *T { return &v }

// version is version 3 of a plan with prices for two meters: a at 0.10 with 100 included, b at
// 5.00 for each 1000 begun.
func version(t rapid.TB, change func(*plans.PlanInput)) *assembly.Plan {
	t.Helper()
	in := &plans.PlanInput{
		Name: "Pro", Currency: "USD", Interval: "month", IntervalCount: 1, BaseIn: plans.InArrears,
		Prices: []plans.Price{
			{Meter: "b", Model: "package", PackageSize: ptr(int64(1000)), PackagePrice: ptr("5")},
			{Meter: "a", Model: "per_unit", UnitPrice: ptr("0.10"), Included: 100},
		},
	}
	if change != nil {
		change(in)
	}
	plan, err := assembly.Compile("pro", 3, in)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// free is a plan change: no prices.
func free(in *plans.PlanInput) { in.Prices = nil }

// based is a plan change: a base price, and no other.
func based(minor int64, baseIn string) func(*plans.PlanInput) {
	return func(in *plans.PlanInput) { in.BasePriceMinor, in.BaseIn, in.Prices = minor, baseIn, nil }
}

// terms are of the part [from, to) of the first 30 days, whose end was known from the start.
func terms(plan *assembly.Plan, from, to int64) assembly.Terms {
	first := from / month * month
	return assembly.Terms{Plan: plan, Period: billing.Period{
		Start: from * day, End: to * day, FullStart: first * day, FullEnd: (first + month) * day, KnownEnd: to * day,
		PlanID: 7, Version: plan.Version,
	}}
}

func known(t assembly.Terms, end int64) assembly.Terms {
	t.Period.KnownEnd = end * day
	return t
}

func trial(t assembly.Terms) assembly.Terms {
	t.Period.Trial = true
	return t
}

func period(t assembly.Terms) assembly.Input {
	return assembly.Input{Kind: billing.KindPeriod, Terms: t, Account: &billing.Account{Customer: 11, DueDays: 14}}
}

func opening(t assembly.Terms) assembly.Input {
	in := period(t)
	in.Kind = billing.KindOpening
	return in
}

func assemble(t rapid.TB, in assembly.Input) assembly.Result {
	t.Helper()
	r, err := assembly.Assemble(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines are the lines of an invoice for people, one a row: "1 usage a 0-30 150/100 500", which
// is n, kind, meter, days, quantity/included, amount.
func lines(inv *billing.Invoice) string {
	var rows []string
	for _, l := range inv.Lines {
		row := fmt.Sprintf("%d %s", l.N, l.Kind)
		if l.Meter != "" {
			row += " " + l.Meter
		}
		row += fmt.Sprintf(" %g-%g", float64(l.From)/float64(day), float64(l.To)/float64(day))
		if l.Meter != "" {
			row += fmt.Sprintf(" %d/%d", l.Quantity, l.Included)
		}
		rows = append(rows, row+fmt.Sprintf(" %d", l.AmountMinor))
	}
	return strings.Join(rows, "\n")
}

// sums are what an invoice comes to: "subtotal + tax = total − credits = due".
func sums(inv *billing.Invoice) string {
	return fmt.Sprintf("%d + %d = %d - %d = %d", inv.SubtotalMinor, inv.TaxMinor, inv.TotalMinor, inv.CreditsMinor, inv.AmountDueMinor)
}

func same[T comparable](t rapid.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%v\nwant\n%v", what, got, want)
	}
}

func contains(s, word string) bool { return strings.Contains(s, word) }

// vat is a list of one tax.
func vat(percent string, inclusive bool) []billing.TaxRate {
	return []billing.TaxRate{{Name: "VAT", Percent: percent, Inclusive: inclusive}}
}

// charged is a period's input with nothing but a line for each amount.
func charged(t rapid.TB, amounts ...int64) assembly.Input {
	in := period(terms(version(t, free), 0, 30))
	for i, amount := range amounts {
		in.Charges = append(in.Charges, billing.Charge{ID: fmt.Sprint(i), Description: "Setup", AmountMinor: amount})
	}
	return in
}

// invoice is a finalized invoice with a line for each amount.
func invoice(t rapid.TB, taxes []billing.TaxRate, amounts ...int64) billing.Invoice {
	t.Helper()
	in := charged(t, amounts...)
	in.Account.Taxes = taxes
	draft := assemble(t, in).Invoice
	draft.ID = "of"
	return finalized(t, draft, 1, 31*day)
}

// finalized is a draft as it is finalized at an instant.
func finalized(t rapid.TB, draft billing.Invoice, number, at int64) billing.Invoice {
	t.Helper()
	inv, err := assembly.Finalize(draft, number, at)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func with(inv billing.Invoice, status string) billing.Invoice {
	inv.Status = status
	return inv
}

func made(t rapid.TB, in assembly.Input) *billing.Invoice {
	t.Helper()
	r := assemble(t, in)
	return &r.Invoice
}
