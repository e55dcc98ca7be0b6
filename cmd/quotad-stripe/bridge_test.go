package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"quotad/client"
)

// A finalized invoice becomes one at Stripe, with its items, and comes to what is open.
func TestFinalizedBecomesStripes(t *testing.T) {
	w := newWorld(t)
	bills := map[string]bill{
		"plain":     {base: 900},
		"o'brien\\": {base: 900, charges: []int64{250, -50}, credits: 300, taxes: []fields{{"name": "VAT", "percent": "19"}}},
		"inside":    {base: 1190, taxes: []fields{{"name": "MwSt", "percent": "19", "inclusive": true}}},
		"yen":       {currency: "JPY", base: 5000, charges: []int64{1}},
		"dinar":     {currency: "KWD", base: 12340, charges: []int64{3, 7}}, // its items cannot be written, and its sum can
		"krona":     {currency: "ISK", base: 77},
		"ariary":    {currency: "MGA", base: 4200},
	}
	ids := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(bills)) {
		w.prepare(name, bills[name])
	}
	for name := range bills {
		ids[name] = w.await(name)
	}
	b := w.drain(w.settings())
	if got := b.notices(); len(got) > 0 {
		t.Errorf("a person is asked: %v\n%s", got, w.log)
	}
	totals := map[string]int64{}
	for name, id := range ids {
		w.same(id)
		for _, in := range w.stripe.of(id) {
			totals[name] = in["total"].(int64)
		}
	}
	if want := map[string]int64{
		"plain": 900, "o'brien\\": 1009, "inside": 1190, "yen": 5001, "dinar": 12350, "krona": 7700,
		"ariary": 42,
	}; !maps.Equal(totals, want) {
		t.Errorf("the totals are %v, not %v", totals, want)
	}
	// A second bridge without the state file finds all of it.
	before := len(w.stripe.invoices)
	if w.drain(w.settings()); len(w.stripe.invoices) != before || len(w.stripe.customers) != len(bills) {
		t.Errorf("a new state file made %d invoices of %d, and %d customers of %d", len(w.stripe.invoices), before, len(w.stripe.customers), len(bills))
	}
}

// same fails unless Stripe has exactly one invoice for q, with exactly its items, of one customer.
func (w *world) same(id string) {
	w.t.Helper()
	q := w.read(id)
	found := w.stripe.of(id)
	if len(found) != 1 {
		w.t.Errorf("Stripe has %d invoices of %s of %s: %v", len(found), id, q.Customer, found)
		return
	}
	in := found[0]
	m, err := moneyOf(q.Currency)
	if err != nil {
		w.t.Fatal(err)
	}
	want, _ := m.stripe(q.AmountDueMinor)
	if in["total"] != want || in["status"] == "draft" || in["currency"] != strings.ToLower(q.Currency) {
		w.t.Errorf("invoice of %s: total %v %v, status %v; due are %d", q.Customer, in["total"], in["currency"], in["status"], want)
	}
	w.stripe.mu.Lock()
	defer w.stripe.mu.Unlock()
	var got []string
	for _, line := range w.stripe.lines[in["id"].(string)] {
		got = append(got, fmt.Sprintf("%v %v", line["description"], line["amount"]))
	}
	if items := wantItems(&q, m); !slices.Equal(got, items) {
		w.t.Errorf("items of %s\n got %q\nwant %q", q.Customer, got, items)
	}
	var customers []object
	for _, c := range w.stripe.customers {
		if c["metadata"].(map[string]string)[metaCustomer] == q.Customer {
			customers = append(customers, c)
		}
	}
	if len(customers) != 1 || customers[0]["id"] != in["customer"] || customers[0]["name"] != "Buyer of "+q.Customer {
		w.t.Errorf("customers of %s are %v, and the invoice is of %v", q.Customer, customers, in["customer"])
	}
}

// wantItems says it once more, from the invoice alone.
func wantItems(q *client.Invoice, m money) (want []string) {
	add := func(text string, minor int64) {
		if m.currency == "KWD" {
			return
		}
		want = append(want, fmt.Sprintf("%s %d", text, minor*m.times/m.over))
	}
	for _, l := range q.Lines {
		add(l.Description, l.AmountMinor)
	}
	if q.SubtotalMinor != q.TotalMinor {
		for _, tax := range q.Taxes {
			add(tax.Name+" "+tax.Percent+" %", tax.TaxMinor)
		}
	}
	if q.CreditsMinor > 0 {
		add("Credits", -q.CreditsMinor)
	}
	if m.currency == "KWD" {
		want = []string{fmt.Sprintf("Invoice %s %d", *q.Number, q.AmountDueMinor)}
	}
	return want
}
