package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"quotad/client"
)

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		currency string
		minor    int64
		stripe   int64
		ok       bool
	}{
		{"USD", 1234, 1234, true},
		{"JPY", 500, 500, true},
		{"HUF", 1045, 1045, true},
		{"TWD", 80045, 80045, true},
		{"ISK", 5, 500, true},
		{"UGX", -5, -500, true},
		{"MGA", 500, 5, true},
		{"MGA", 550, 0, false},
		{"KWD", 5120, 5120, true},
		{"KWD", 5124, 0, false},
		{"ISK", math.MaxInt64 / 50, 0, false},
	} {
		m, err := moneyOf(c.currency)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := m.stripe(c.minor)
		if ok != c.ok || ok && got != c.stripe {
			t.Errorf("%d %s is %d, %v at Stripe", c.minor, c.currency, got, ok)
		}
		if back, ok := m.quotad(got); c.ok && (!ok || back != c.minor) {
			t.Errorf("%d %s comes back as %d", c.minor, c.currency, back)
		}
	}
	if _, err := moneyOf("XAU"); err == nil {
		t.Error("gold has a minor unit")
	}
	isk, _ := moneyOf("ISK")
	if _, ok := isk.quotad(550); ok {
		t.Error("half a króna is taken")
	}
}

// However many lines an invoice has, Stripe's items are few enough, and come to the same.
func TestItemsFit(t *testing.T) {
	for _, n := range []int{1, 229, 230, 231, 5000} {
		number := "S-1"
		q := &client.Invoice{Number: &number, Currency: "EUR", PeriodStart: time.Unix(1, 0), PeriodEnd: time.Unix(2, 0)}
		for i := range n {
			q.Lines = append(q.Lines, client.Line{N: i + 1, Kind: "charge", Description: strings.Repeat("ü", i%700), AmountMinor: int64(i*i) - 50})
			q.SubtotalMinor += int64(i*i) - 50
		}
		q.Taxes = []client.Tax{{Name: "VAT", Percent: "19", TaxMinor: 77}}
		q.TotalMinor, q.CreditsMinor = q.SubtotalMinor+77, 5
		items := itemsOf(q)
		if len(items) > maxItems-spareItems || sum(items) != q.TotalMinor-5 {
			t.Errorf("of %d lines there are %d items, which come to %d", n, len(items), sum(items))
		}
		keys := map[string]bool{}
		for _, i := range items {
			if keys[i.key] || len([]rune(i.text)) > maxText {
				t.Errorf("item %q twice, or too long", i.key)
			}
			keys[i.key] = true
		}
		if fmt.Sprint(items) != fmt.Sprint(itemsOf(q)) {
			t.Error("the items are other ones each time")
		}
	}
}
