package assembly

import (
	"fmt"
	"slices"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/quota/model"
)

// Targets of a credit note's money.
const (
	ToCredits = "credits" // money from outside becomes a credit of kind carried
	Outside   = "outside" // the seller pays money from outside back elsewhere
)

// NoteRequest is a request for a credit note.
type NoteRequest struct {
	Lines  []NoteLine
	Reason string
	To     string // ToCredits or Outside
}

// NoteLine is the amount to credit on one line of the invoice. AmountMinor is at least 1. Like the line's
// amount, it excludes an exclusive tax.
type NoteLine struct {
	N           int
	AmountMinor int64
}

// Note is a credit note with its effects.
type Note struct {
	// Invoice has negative amounts and is paid. The code that stores it must set ID, CustomerKey and MadeAt,
	// and assign a number with Finalize.
	Invoice billing.Invoice
	// Whole reports that the invoice is credited completely, so its status becomes credited.
	Whole bool
	// Money is the distribution of the total, tax included. The note first reduces the open amount.
	Money billing.NoteMoney
	// Returned contains the amounts that return to credits. Their sum is Money.ReturnedMinor.
	Returned []Applied
}

// Applied is a payment of an invoice by a credit, or an amount returned to a credit.
type Applied struct {
	Credit  string // the credit's id
	Kind    string // the credit's kind
	Payment int    // the payment's N; 0 if finalization applied the credit
	Minor   int64  // above 0; excludes the amount already returned
}

// CreditNote credits lines of an invoice. earlier contains all credit notes of the invoice so far, and lines
// the standing of each line, by n. applied lists the payments by credits in their order.
//
// The note's tax, at the invoice's rates, is the tax on all credited amounts less the tax credited before. So
// the notes of a whole invoice add up to its tax.
//
// The error is model.FieldErrors for a request that no invoice could satisfy. It is billing.StateError for an
// invoice that is neither finalized nor paid, and for a credit note. It is billing.ErrTooMuch, with details,
// if the request exceeds the rest of a line or of the total. A line with an amount of 0 or less has no rest.
func CreditNote(inv *billing.Invoice, earlier []billing.Invoice, lines map[int]Standing, applied []Applied, request NoteRequest) (Note, error) {
	if err := request.check(inv); err != nil {
		return Note{}, err
	}
	if err := creditable(inv); err != nil {
		return Note{}, err
	}
	left := max(0, inv.SubtotalMinor) // the rest of the total is above 0 while the rest of the subtotal is
	for i := range earlier {
		left += earlier[i].SubtotalMinor
	}
	note := billing.Invoice{
		Kind: billing.KindCreditNote, Status: billing.StatusPaid, Of: inv.ID,
		Customer: inv.Customer, CustomerKey: inv.CustomerKey, Currency: inv.Currency,
		Chain: inv.Chain, N: inv.N, PeriodStart: inv.PeriodStart, PeriodEnd: inv.PeriodEnd,
		PlanID: inv.PlanID, PriceVersion: inv.PriceVersion, Seller: inv.Seller, Buyer: inv.Buyer,
		OrderReference: inv.OrderReference, Notes: inv.Notes,
		Zone: inv.Zone, TestClock: inv.TestClock, Reason: request.Reason,
	}
	now := int64(0)
	for i, asked := range request.Lines {
		line, standing := &inv.Lines[slices.IndexFunc(inv.Lines, func(l billing.Line) bool { return l.N == asked.N })], lines[asked.N]
		most := max(0, standing.LeftMinor())
		if line.AmountMinor <= 0 {
			most = 0 // corrections that raised it can be credited themselves
		}
		if asked.AmountMinor > most {
			return Note{}, fmt.Errorf("%w: lines[%d]: %d is left of line %d, in minor units: %s", billing.ErrTooMuch, i, most, asked.N, &standing)
		}
		note.Lines = append(note.Lines, noteLine(inv, line, i+1, asked.AmountMinor, request.Reason))
		if now += asked.AmountMinor; now > left { // each amount is below 10¹⁵: no overflow
			return Note{}, fmt.Errorf("%w: %d is left of its subtotal, in minor units, since some of its lines are below 0 or credited", billing.ErrTooMuch, left)
		}
	}
	taxes, err := rating.NewTaxes(RatesIn(inv))
	if err != nil {
		return Note{}, fmt.Errorf("the taxes of invoice %s: %w", inv.ID, err)
	}
	taxed, err := taxes.CreditNote(inv.SubtotalMinor-left, now)
	if err != nil {
		return Note{}, fmt.Errorf("the taxes of invoice %s: %w", inv.ID, err)
	}
	note.Totals, note.Taxes = totals(taxed, len(inv.Taxes) > 0 && inv.Taxes[0].Inclusive)
	for i := range note.Taxes {
		note.Taxes[i].Note = inv.Taxes[i].Note
	}
	made := Note{Invoice: note, Whole: now == left}
	made.divide(inv, earlier, applied, request.To)
	return made, nil
}

// divide computes the distribution of the note's money. The note first reduces the open amount. The seller
// pays out the rest, or carries it over to a new credit, up to the outside money of the invoice. Outside
// money is payments and paid credits, less the amounts of earlier notes. The amounts of other credits return
// to these credits, beginning with the credit applied last.
func (n *Note) divide(inv *billing.Invoice, earlier []billing.Invoice, applied []Applied, to string) {
	m := &n.Money
	m.OpenMinor = min(-n.Invoice.TotalMinor, inv.OpenMinor())
	beyond := -n.Invoice.TotalMinor - m.OpenMinor
	came := inv.MoneyMinor()
	for _, a := range applied {
		if a.Kind == billing.CreditPaid {
			came += a.Minor
		}
	}
	for i := range earlier {
		if m := earlier[i].Money; m != nil {
			came -= m.OutsideMinor + m.CarriedMinor
		}
	}
	for _, a := range slices.Backward(applied) {
		back := min(a.Minor, beyond-max(0, came)-m.ReturnedMinor)
		if a.Kind != billing.CreditPaid && back > 0 {
			a.Minor = back
			m.ReturnedMinor, n.Returned = m.ReturnedMinor+back, append(n.Returned, a)
		}
	}
	if to == ToCredits {
		m.CarriedMinor = beyond - m.ReturnedMinor
	} else {
		m.OutsideMinor = beyond - m.ReturnedMinor
	}
}

// check returns the errors of a request that no invoice with these lines could satisfy.
func (r *NoteRequest) check(inv *billing.Invoice) error {
	var bad model.FieldErrors
	refuse := func(field, format string, args ...any) {
		bad = append(bad, model.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
	}
	if r.To != ToCredits && r.To != Outside {
		refuse("to", `must be "credits" or "outside"`)
	}
	if len(r.Lines) == 0 {
		refuse("lines", "must name at least one line")
	}
	named := make(map[int]bool, len(inv.Lines))
	for i := range inv.Lines {
		named[inv.Lines[i].N] = false
	}
	for i, line := range r.Lines {
		seen, known := named[line.N]
		switch {
		case !known:
			refuse(fmt.Sprintf("lines[%d].n", i), "the invoice has no line %d", line.N)
		case seen:
			refuse(fmt.Sprintf("lines[%d].n", i), "line %d is named twice", line.N)
		}
		if known {
			named[line.N] = true
		}
		if line.AmountMinor < 1 || line.AmountMinor > billing.MaxMinor {
			refuse(fmt.Sprintf("lines[%d].amount_minor", i), "must be between 1 and %d", billing.MaxMinor)
		}
	}
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// creditable returns an error if the invoice's status allows no credit note.
func creditable(inv *billing.Invoice) error {
	switch {
	case inv.Kind == billing.KindCreditNote:
		return &billing.StateError{Status: "a credit note", Want: "only invoices can be credited"}
	case inv.Status == billing.StatusPaid, inv.Status == billing.StatusFinalized:
		return nil
	}
	return &billing.StateError{Status: inv.Status, Want: "only invoices that are finalized or paid can be credited"}
}

// noteLine returns the n-th line of a credit note, which credits the given line of the invoice.
func noteLine(inv *billing.Invoice, of *billing.Line, n int, amount int64, reason string) billing.Line {
	description := "Credit for line " + fmt.Sprint(of.N) + ", " + of.Description
	if reason != "" {
		description += " (" + reason + ")"
	}
	return billing.Line{
		N: n, Kind: of.Kind, Meter: of.Meter, Description: description, From: of.From, To: of.To,
		PlanVersion: of.PlanVersion, Tiers: []billing.TierLine{}, AmountMinor: -amount,
		OfInvoice: inv.ID, OfLine: of.N,
	}
}

// RatesIn returns the taxes of an invoice as of its creation.
func RatesIn(inv *billing.Invoice) []rating.Tax {
	rates := make([]rating.Tax, len(inv.Taxes))
	for i, t := range inv.Taxes {
		rates[i] = rating.Tax{Name: t.Name, Percent: t.Percent, Inclusive: t.Inclusive}
	}
	return rates
}
