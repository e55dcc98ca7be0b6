package parts

import (
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/billing"
	invoices "quotad/internal/billing/document"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// IsNote reports whether an invoice is a credit note.
func IsNote(i *client.Invoice) bool { return i.Kind == "credit_note" }

// PaidOn returns, as text, the day on which an invoice was paid, or "Settled" if credit notes covered the whole
// open amount.
func PaidOn(i *client.Invoice, zone *time.Location) string {
	if i.PaidAt == nil {
		return "Settled"
	}
	return "Paid on " + day(*i.PaidAt, zone)
}

func day(at time.Time, zone *time.Location) string { return at.In(zone).Format("2 January 2006") }

// manyPayments is the maximum number of payments that a page lists. More payments are shown as one sum.
const manyPayments = 12

// Settled lists the deductions from an invoice's total: credits, payments and credit notes.
func Settled(i *client.Invoice, zone *time.Location) (all []Fact) {
	add := func(term string, minor int64) {
		if minor != 0 {
			all = append(all, Fact{Term: term, Text: words.Money(minor, i.Currency)})
		}
	}
	add("Credits", -i.CreditsMinor)
	if len(i.Payments) > manyPayments {
		add("Paid", -i.PaidMinor)
	} else {
		for _, p := range i.Payments {
			add(PaidBy(&p)+" on "+day(p.At, zone), -p.AmountMinor)
		}
	}
	add("Credit notes", -i.CreditedMinor)
	if i.CreditedMinor > 0 {
		add("Given back", i.OpenMinor+i.PaidMinor+i.CreditedMinor-i.AmountDueMinor)
	}
	return all
}

// PaidBy returns the name of a payment's kind.
func PaidBy(p *client.Payment) string {
	if p.Kind == "credits" {
		return "Credits applied"
	}
	return "Paid"
}

// Rest returns the remaining amount of an invoice after all deductions, with its label.
func Rest(i *client.Invoice) Fact {
	switch {
	case IsNote(i):
		return Fact{Term: "Given back", Text: words.Money(-i.TotalMinor, i.Currency)}
	case i.Status == "draft":
		return Fact{Term: "So far", Text: words.Money(i.AmountDueMinor, i.Currency)}
	case i.OpenMinor > 0:
		return Fact{Term: "Due", Text: words.Money(i.OpenMinor, i.Currency)}
	}
	return Fact{Term: "Open", Text: words.Money(0, i.Currency)}
}

// PricesOf explains the amount of a usage line in the words of the invoice document. It returns nothing for
// other lines.
func PricesOf(l *client.Line, currency string) []string {
	if l.Kind != "usage" {
		return nil
	}
	line := billing.Line{Kind: l.Kind, Quantity: l.Quantity, Included: l.Included, Tiers: l.Tiers, AmountMinor: l.AmountMinor}
	if l.UnitPrice != nil {
		line.UnitPrice = *l.UnitPrice
	}
	if l.PackageSize != nil && l.PackagePrice != nil {
		line.PackageSize, line.PackagePrice = *l.PackageSize, *l.PackagePrice
	}
	if l.Level != nil {
		line.Level = billing.LineLevel{By: l.Level.By, Exact: l.Level.Exact}
	}
	if l.Applied != nil {
		line.Applied, line.WholeMinor = *l.Applied, l.WholeMinor
	}
	if p := l.Part; p != nil {
		line.Part = &billing.Part{From: p.From.UnixMicro(), To: p.To.UnixMicro(), OfFrom: p.OfFrom.UnixMicro(), OfTo: p.OfTo.UnixMicro()}
	}
	return invoices.How(&line, currency)
}

// Paper returns a document of the invoice in the address. The browser shows the printable page and saves all
// other formats.
func Paper(v *page.Visit) (*page.View, error) {
	name := v.R.PathValue("file")
	id, ext, _ := strings.Cut(name, ".")
	if ext != "html" && ext != "pdf" && ext != "csv" {
		return nil, page.ErrMissing
	}
	body, header, err := v.API.InvoiceFile(v.Ctx(), id, ext)
	if err != nil {
		return nil, err
	}
	f := &page.File{MediaType: header.Get("Content-Type"), Name: "invoice-" + name, Body: body}
	if ext == "html" {
		f.Shown, f.Policy = true, header.Get("Content-Security-Policy")
	}
	return &page.View{File: f}, nil
}
