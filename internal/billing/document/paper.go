package document

import (
	"time"

	"quotad/internal/billing"
)

// paper contains the texts of an invoice for people, in the order in which they are drawn.
type paper struct {
	Title    string // "Invoice Q-17"
	Label    string // the status; "" for a credit note
	Tone     string // the label's color: "", "good", "bad" or "accent"
	Test     string // "Test" if the customer is on a test clock, else ""
	Headline string // the amount and what to do
	Notices  []notice
	From, To party
	Facts    []fact
	Rows     []row
	Totals   []total
	Blocks   []block // below the totals
	Footer   []string
	Foot     string

	amounts
	dates dates
}

type notice struct {
	Text string
	Bad  bool
}

type party struct {
	Heading, Name string
	Lines         []string
}

type fact struct{ Name, Value string }

// block is a group of lines with a heading.
type block struct {
	Heading string
	Lines   []string
}

// row is a line of the invoice.
type row struct {
	N           int
	Description string
	Details     []string
	Quantity    string // "" if the line has no quantity
	Amount      string
	Tiers       []tierRow
}

// tierRow is one tier in the explanation of an amount. Units contains the number of units and their price:
// "500 × €0.02 and €5.00 flat".
type tierRow struct{ Range, Units, Amount string }

type total struct {
	Name, Amount string
	Note         string // below the name of a tax
	Strong       bool   // set for the total
	Last         bool   // set for the amount to pay
}

// newPaper lays out an invoice. Dates are in the timezone zone, or in UTC if zone is nil.
func newPaper(inv *billing.Invoice, zone *time.Location) *paper {
	if zone == nil {
		zone = time.UTC
	}
	p := &paper{amounts: amountsIn(inv.Currency), dates: dates{zone}, Foot: "Dates are those of the time zone " + zone.String() + "."}
	p.Title = title(inv)
	p.Label, p.Tone = label(inv)
	if inv.TestClock != "" {
		p.Test = "Test"
	}
	p.Headline = p.headline(inv)
	p.Notices = notices(inv)
	s := &inv.Seller
	p.From = party{Heading: "From", Name: s.Name, Lines: append(lines(s.Address, s.Country, s.TaxID), filled(s.Registration, s.Email)...)}
	p.To = party{Heading: "To", Name: inv.Buyer.Name, Lines: lines(inv.Buyer.Address, inv.Buyer.Country, inv.Buyer.TaxID)}
	if p.To.Name == "" {
		p.To.Name = inv.CustomerKey
	}
	p.Facts = p.facts(inv)
	// A usage line of 0 units and amount 0 is omitted. The other lines keep their numbers, because credit
	// notes refer to them.
	for i := range inv.Lines {
		if l := &inv.Lines[i]; l.Kind != billing.LineUsage || l.Quantity != 0 || l.AmountMinor != 0 {
			p.Rows = append(p.Rows, p.row(inv, l))
		}
	}
	p.Totals = p.totals(inv)
	p.Blocks, p.Footer = blocks(inv), filled(s.Footer...)
	return p
}

// blocks returns the texts below the totals. Credit notes and void invoices omit the payment instructions.
func blocks(inv *billing.Invoice) (all []block) {
	add := func(heading string, lines []string) {
		if lines = filled(lines...); len(lines) > 0 {
			all = append(all, block{heading, lines})
		}
	}
	if inv.Kind != billing.KindCreditNote && inv.Status != billing.StatusVoid {
		add("How to pay", inv.Seller.Payment)
	}
	add("Notes", inv.Notes)
	return all
}

// lines returns a party's lines below its name.
func lines(address []string, code, taxID string) []string {
	out := append(filled(address...), filled(country(code))...)
	if taxID != "" {
		out = append(out, "Tax ID "+taxID)
	}
	return out
}

// filled returns the lines that are not empty.
func filled(lines ...string) (out []string) {
	for _, line := range lines {
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

func title(inv *billing.Invoice) string {
	switch {
	case inv.Kind == billing.KindCreditNote:
		return named("Credit note", inv.Number)
	case inv.ID == "":
		return "Upcoming invoice"
	case inv.Status == billing.StatusDraft:
		return "Draft invoice"
	}
	return named("Invoice", inv.Number)
}

func named(what, number string) string {
	if number == "" {
		return what
	}
	return what + " " + number
}

func label(inv *billing.Invoice) (text, tone string) {
	if inv.Kind == billing.KindCreditNote {
		return "", ""
	}
	switch inv.Status {
	case billing.StatusDraft:
		if inv.Held != "" {
			return "Held", "bad"
		}
		return "Draft", ""
	case billing.StatusPaid:
		if inv.PaidAt == nil {
			return "Settled", "good"
		}
		return "Paid", "good"
	case billing.StatusVoid:
		return "Void", "bad"
	case billing.StatusCredited:
		return "Credited", ""
	}
	if inv.PaidMinor() > 0 {
		return "Partly paid", "accent"
	}
	return "Open", "accent"
}

func (p *paper) headline(inv *billing.Invoice) string {
	switch {
	case inv.Kind == billing.KindCreditNote:
		return p.money(-inv.TotalMinor) + " credited"
	case inv.Status == billing.StatusDraft:
		return p.money(inv.AmountDueMinor) + " so far"
	case inv.Status == billing.StatusPaid && inv.PaidAt != nil:
		return "Paid on " + p.dates.day(*inv.PaidAt)
	case inv.OpenMinor() == 0:
		return "Nothing to pay"
	case inv.DueAt != nil:
		return p.money(inv.OpenMinor()) + " due by " + p.dates.day(*inv.DueAt)
	}
	return p.money(inv.OpenMinor()) + " due"
}

func notices(inv *billing.Invoice) []notice {
	var out []notice
	if inv.TestClock != "" {
		out = append(out, notice{"This is a test. The customer lives by the test clock " + inv.TestClock + ". Nothing is to be paid.", true})
	}
	switch {
	case inv.Held != "":
		out = append(out, notice{"This invoice is held and cannot be sent yet: " + inv.Held, true})
	case inv.Status == billing.StatusDraft:
		out = append(out, notice{Text: "This is a draft. It has no number and may change. Nothing is to be paid on it."})
	}
	switch inv.Status {
	case billing.StatusVoid:
		text := "This invoice is void. Nothing is to be paid on it."
		if inv.VoidReason != "" {
			text += " Reason: " + inv.VoidReason
		}
		out = append(out, notice{text, true})
	case billing.StatusCredited:
		out = append(out, notice{Text: "Credit notes cover all of this invoice."})
	}
	switch {
	case inv.Of == "":
	case inv.Kind == billing.KindCreditNote:
		text := "This note credits invoice " + inv.OfNumber + "."
		if inv.Reason != "" {
			text += " Reason: " + inv.Reason
		}
		out = append(out, notice{Text: text})
	default:
		out = append(out, notice{Text: "This invoice replaces invoice " + inv.OfNumber + "."})
	}
	return out
}

func (p *paper) facts(inv *billing.Invoice) []fact {
	var out []fact
	add := func(name, value string) {
		if value != "" {
			out = append(out, fact{name, value})
		}
	}
	add("Number", inv.Number)
	if inv.FinalizedAt != nil {
		add("Date", p.dates.day(*inv.FinalizedAt))
	}
	if inv.DueAt != nil && inv.OpenMinor() > 0 {
		add("Due", p.dates.day(*inv.DueAt))
	}
	if inv.PaidAt != nil {
		add("Paid", p.dates.day(*inv.PaidAt))
	}
	add("Period", p.dates.span(inv.PeriodStart, inv.PeriodEnd))
	add("Customer", inv.CustomerKey)
	add("Order", inv.OrderReference)
	add("Payment", inv.Reference)
	return out
}
