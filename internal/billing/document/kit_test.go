package document_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/document"
)

const day = int64(24 * time.Hour / time.Microsecond)

var march = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// sample is a finalized invoice of March 2026 with a line of each kind.
func sample() billing.Invoice {
	finalized, due := march+31*day+3600e6, march+45*day
	end := march + 31*day
	next := march + 61*day
	inv := billing.Invoice{
		ID: "5f0f2b5e-6d0b-4f0e-9a51-0d6f6a5b3c11", Number: "Q-17", Kind: billing.KindPeriod, Status: billing.StatusFinalized,
		CustomerKey: "acme", Currency: "EUR", PeriodStart: march, PeriodEnd: end, PriceVersion: 3,
		Lines: []billing.Line{
			{Kind: billing.LineBase, Description: "Base price, Pro", From: march, To: end, AmountMinor: 4900},
			{
				Kind: billing.LineUsage, Meter: "requests", Description: "API calls: 1,234,567 × request", From: march, To: end, Quantity: 1234567,
				Included: 100000, AmountMinor: 79346, Tiers: []billing.TierLine{
					{UpTo: new(int64(500000)), Quantity: "500000", Amount: "500", UnitPrice: "0.001"},
					{UpTo: new(int64(1000000)), Quantity: "500000", Amount: "250", UnitPrice: "0.0005"},
					{Quantity: "134567", Amount: "43.45670", UnitPrice: "0.0003", FlatPrice: new("3.0866")},
				},
			},
			{
				Kind: billing.LineUsage, Meter: "storage", Description: "Storage: 250 × GB", From: march, To: end, Quantity: 250, AmountMinor: 2500,
				Priced: billing.Priced{UnitPrice: "0.10"},
			},
			{Kind: billing.LineMinimum, Description: "Difference to the minimum price, Pro", From: march, To: end, AmountMinor: 254},
			{Kind: billing.LineUnused, Description: "Unused base price, Starter", From: march + 20*day, To: end, AmountMinor: -323},
			{Kind: billing.LineBase, Description: "Base price in advance, Pro", From: end, To: next, AmountMinor: 4900},
			{
				Kind: billing.LineCorrection, Meter: "requests", Description: "Correction of invoice Q-12, API calls: -5,000 × request", From: march - 28*day,
				To: march, Quantity: -5000, Before: &billing.Before{Quantity: 20000, AmountMinor: 1000}, Priced: billing.Priced{UnitPrice: "0.0005"}, AmountMinor: -250,
				OfInvoice: "0b1f4a0e-7a6f-4f3b-8f0d-8c9d1f2b7a10",
			},
			{
				Kind: billing.LineCharge, Description: "Onboarding of the new office in Thessaloniki, two days", From: march + 9*day, To: march + 9*day,
				AmountMinor: 120000,
			},
		},
		Taxes:  []billing.Tax{{Name: "VAT", Percent: "19", BaseMinor: 211327, TaxMinor: 40152}},
		Totals: billing.Totals{SubtotalMinor: 211327, TaxMinor: 40152, TotalMinor: 251479}, CreditsMinor: 10000, AmountDueMinor: 241479,
		Seller: billing.Seller{
			Key: "default", Name: "Meterwerk GmbH", Address: []string{"Torstraße 12", "10119 Berlin", "Germany"}, TaxID: "DE123456789",
			Prefix: "Q-",
		},
		Buyer:  billing.Buyer{Name: "Ακμή Εμπορική Α.Ε.", Address: []string{"Λεωφ. Νίκης 7", "546 24 Θεσσαλονίκη"}, Country: "GR", TaxID: "EL999999999"},
		MadeAt: end + 10e6, FinalizeAt: finalized, FinalizedAt: &finalized, DueAt: &due,
	}
	for i := range inv.Lines {
		inv.Lines[i].N, inv.Lines[i].PlanVersion = i+1, 3
	}
	return inv
}

// samples are invoices of all kinds and statuses, by a name.
func samples() map[string]billing.Invoice {
	of := func(change func(i *billing.Invoice)) billing.Invoice {
		inv := sample()
		change(&inv)
		return inv
	}
	draft := func(i *billing.Invoice) {
		i.Status, i.Number, i.FinalizedAt, i.DueAt = billing.StatusDraft, "", nil, nil
	}
	return map[string]billing.Invoice{
		"open":  sample(),
		"draft": of(draft),
		"upcoming": of(func(i *billing.Invoice) {
			draft(i)
			i.ID = ""
		}),
		"held": of(func(i *billing.Invoice) {
			draft(i)
			i.Held = "an amount of 10¹⁵ minor units or more"
		}),
		"paid": of(func(i *billing.Invoice) {
			pay(i, march+39*day, 241479)
		}),
		"partly": of(func(i *billing.Invoice) {
			i.SetPayments([]billing.Payment{
				{N: 1, Kind: billing.PaymentMoney, AmountMinor: 100000, Reference: "part 1", At: march + 35*day},
				{N: 2, Kind: billing.PaymentMoney, AmountMinor: 9, Reference: "bounced", At: march + 36*day, ReversedAt: new(march + 37*day)},
				{N: 3, Kind: billing.PaymentCredits, AmountMinor: 41479, At: march + 38*day},
			})
		}),
		"in-many-parts": of(func(i *billing.Invoice) {
			for n := range 13 {
				i.SetPayments(append(i.Payments, billing.Payment{N: n + 1, Kind: billing.PaymentMoney, AmountMinor: 100, At: march + 35*day}))
			}
		}),
		"void": of(func(i *billing.Invoice) {
			i.Status, i.VoidReason = billing.StatusVoid, "Sent to the wrong company"
		}),
		"credited": of(func(i *billing.Invoice) {
			i.Status, i.CreditedMinor, i.NotedMinor = billing.StatusCredited, 251479, 241479
		}),
		"reissue": of(func(i *billing.Invoice) { i.Of, i.OfNumber = "0b1f4a0e-7a6f-4f3b-8f0d-8c9d1f2b7a10", "Q-9" }),
		"less":    of(func(i *billing.Invoice) { i.CreditedMinor, i.NotedMinor = 71400, 71400 }),
		"less-paid": of(func(i *billing.Invoice) {
			i.CreditedMinor, i.NotedMinor = 71400, 71400
			pay(i, march+39*day, 170079)
		}),
		"given-back": of(func(i *billing.Invoice) {
			i.CreditedMinor = 71400
			pay(i, march+39*day, 241479)
		}),
		"nothing-open": of(func(i *billing.Invoice) {
			i.Status, i.CreditedMinor, i.NotedMinor = billing.StatusPaid, 241479, 241479
		}),
		"beyond": of(func(i *billing.Invoice) {
			i.Status, i.CreditedMinor, i.NotedMinor = billing.StatusPaid, 245000, 241479
		}),
		"priced":    of(func(i *billing.Invoice) { *i = priced() }),
		"inclusive": of(inclusive),
		"opening": of(func(i *billing.Invoice) {
			i.Kind, i.Lines = billing.KindOpening, i.Lines[:1]
			i.Taxes, i.Totals, i.CreditsMinor, i.AmountDueMinor = nil, billing.Totals{SubtotalMinor: 4900, TotalMinor: 4900}, 0, 4900
		}),
		"credit-note": of(func(i *billing.Invoice) {
			i.Kind, i.Status, i.Of, i.OfNumber, i.Number, i.DueAt = billing.KindCreditNote, billing.StatusPaid, i.ID, i.Number, "Q-18", nil
			i.Lines = []billing.Line{{
				N: 1, Kind: billing.LineCharge,
				Description: "Credit for line 8, Onboarding of the new office in Thessaloniki, two days (only one day was needed)", From: march + 9*day,
				To: march + 9*day, AmountMinor: -60000, OfInvoice: i.Of, OfLine: 8,
			}}
			i.Taxes = []billing.Tax{{Name: "VAT", Percent: "19", BaseMinor: -60000, TaxMinor: -11400}}
			i.Totals, i.CreditsMinor, i.AmountDueMinor = billing.Totals{SubtotalMinor: -60000, TaxMinor: -11400, TotalMinor: -71400}, 0, 0
		}),
		"negative": of(func(i *billing.Invoice) {
			i.Status, i.Lines, i.Taxes = billing.StatusPaid, i.Lines[6:7], nil
			i.Totals, i.CreditsMinor, i.AmountDueMinor = billing.Totals{SubtotalMinor: -250, TotalMinor: -250}, 0, 0
		}),
		"without-lines": of(func(i *billing.Invoice) {
			i.Lines, i.Taxes, i.Totals, i.CreditsMinor, i.AmountDueMinor = nil, nil, billing.Totals{}, 0, 0
			i.Buyer, i.Seller = billing.Buyer{}, billing.Seller{}
		}),
		"largest": of(func(i *billing.Invoice) {
			for n := range i.Lines {
				i.Lines[n].Meter, i.Lines[n].Quantity, i.Lines[n].AmountMinor = "requests", math.MaxInt64, 1-1e15
			}
			i.SubtotalMinor, i.TotalMinor, i.AmountDueMinor = 1e15-1, 1e15-1, 1e15-1
		}),
		"papers": of(papers),
		"papers-note": of(func(i *billing.Invoice) {
			papers(i)
			i.Kind, i.Status, i.Of, i.OfNumber, i.Number, i.DueAt = billing.KindCreditNote, billing.StatusPaid, i.ID, i.Number, "N-1", nil
		}),
		"scripts": of(func(i *billing.Invoice) {
			i.Buyer = billing.Buyer{Name: "株式会社アクメ", Address: []string{
				"東京都千代田区丸の内一丁目九番二号グラントウキョウサウスタワー", "주식회사 서울", "Nguyễn Thị Ánh", "חברת אקמי 24 בע״מ",
				"บริษัท น้ำตาลไทย จำกัด", "北京科技有限公司",
			}, Country: "JP"}
			i.Lines[0].Description = "Base price, プロ plan for 北京科技有限公司"
			i.OrderReference, i.Notes = "注文 4711", []string{"Ship to: 大阪府大阪市北区梅田三丁目一番一号ノースゲートビルディング二十階, floor 20, attention of 田中さん and of חברת אקמי, please ring twice"}
		}),
		"long": of(func(i *billing.Invoice) { *i = long(200) }),
	}
}

// papers says all that a seller, an account and a tax may say.
func papers(i *billing.Invoice) {
	i.Seller.Address, i.Seller.Country, i.Seller.Registration, i.Seller.Email = i.Seller.Address[:2], "DE", "Amtsgericht Charlottenburg, HRB 12345",
		"billing@meterwerk.example"
	i.Seller.Payment = []string{"Transfer the amount to Meterwerk GmbH", "IBAN DE02 1203 0000 0000 2020 51, BIC BYLADEM1001"}
	i.Seller.Footer = []string{"Managing directors: Ada Müller, Jürgen Groß", "Thank you for your trust."}
	i.OrderReference, i.Notes = "PO 2026/4711", []string{"Cost centre 42", "Approved by Eleni Papadopoulou"}
	i.Taxes = []billing.Tax{{Name: "VAT", Percent: "0", BaseMinor: 211327, Note: "Reverse charge: the buyer owes the tax, Article 196 of Directive 2006/112/EC"}}
	i.Totals, i.AmountDueMinor = billing.Totals{SubtotalMinor: 211327, TotalMinor: 211327}, 201327
}

func inclusive(i *billing.Invoice) {
	i.Taxes = []billing.Tax{
		{Name: "State tax", Percent: "6.25", Inclusive: true, BaseMinor: 195000, TaxMinor: 12188},
		{Name: "City tax", Percent: "2.125", Inclusive: true, BaseMinor: 195000, TaxMinor: 4139},
	}
	i.Totals, i.CreditsMinor, i.AmountDueMinor = billing.Totals{SubtotalMinor: 211327, TaxMinor: 16327, TotalMinor: 211327}, 0, 211327
}

// priced is an invoice with a line for each way in which a price makes an amount, and lines of nothing.
func priced() billing.Invoice {
	inv := sample()
	unit := func(price string) billing.Priced { return billing.Priced{UnitPrice: price} }
	pack := billing.Priced{PackageSize: 1000, PackagePrice: "2"}
	tier := billing.TierLine{UpTo: new(int64(100)), Quantity: "30", Amount: "8.0000", UnitPrice: "0.1", FlatPrice: new("5")}
	inv.Lines = []billing.Line{
		{Meter: "calls", Quantity: 1040, Included: 1000, Priced: unit("0.05"), AmountMinor: 200},
		{Meter: "idle", Priced: unit("0.05")},
		{Meter: "mails", Quantity: 2001, Priced: pack, AmountMinor: 600},
		{Meter: "texts", Quantity: 3, Included: 2, Priced: pack, AmountMinor: 200},
		{Meter: "space", Quantity: 30, Tiers: []billing.TierLine{tier}, AmountMinor: 800},
		{Meter: "least", Priced: unit("0.05"), Applied: billing.AppliedMinimum, WholeMinor: new(int64(500)), AmountMinor: 500},
		{Meter: "most", Quantity: 1000000, Priced: unit("0.05"), Applied: billing.AppliedMaximum, WholeMinor: new(int64(350)), AmountMinor: 350},
		{Meter: "inside", Quantity: 7, Included: 1000, Priced: unit("0.000001")},
		{Meter: "given", Quantity: -7, Priced: unit("1")},
		{Meter: "before", Quantity: 12, AmountMinor: 24},
		{Meter: "mails", Kind: billing.LineCorrection, Quantity: 5000, Before: &billing.Before{Quantity: 2001, AmountMinor: 600}, Priced: pack, AmountMinor: 1000},
	}
	inv.SubtotalMinor = 0
	for n := range inv.Lines {
		l := &inv.Lines[n]
		l.N, l.From, l.To, l.Description, l.Kind = n+1, inv.PeriodStart, inv.PeriodEnd, "Meter "+l.Meter, cmp.Or(l.Kind, billing.LineUsage)
		inv.SubtotalMinor += l.AmountMinor
	}
	inv.Taxes, inv.TotalMinor, inv.TaxMinor, inv.CreditsMinor, inv.AmountDueMinor = nil, inv.SubtotalMinor, 0, 0, inv.SubtotalMinor
	return inv
}

// long is an invoice of n charges; the texts of some are long.
func long(n int) billing.Invoice {
	inv := sample()
	inv.Lines = nil
	for i := range n {
		at := march + int64(i%31)*day
		words := fmt.Sprintf("Charge %d of %d", i+1, n)
		if i%7 == 3 {
			words += ": spare parts, their delivery by ship and by lorry, customs, and the work of two people who put them in"
		}
		inv.Lines = append(inv.Lines, billing.Line{N: i + 1, Kind: billing.LineCharge, Description: words, From: at, To: at, AmountMinor: int64(i) * 1001})
	}
	return inv
}

func html(t *testing.T, inv billing.Invoice) string {
	t.Helper()
	out, err := document.HTML(&inv, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func pdf(t *testing.T, inv billing.Invoice) []byte {
	t.Helper()
	out, err := document.PDF(&inv, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pay pays an invoice at once.
func pay(i *billing.Invoice, at, amount int64) {
	i.Status = billing.StatusPaid
	i.SetPayments([]billing.Payment{{N: 1, Kind: billing.PaymentMoney, AmountMinor: amount, Reference: "SEPA 2026-04-09 / 4711", At: at}})
}
