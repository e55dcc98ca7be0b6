package assembly

import (
	"fmt"
	"slices"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/quota/model"
)

// Where the money of a credit note goes.
const (
	ToCredits = "credits" // what came from outside becomes a credit of kind carried
	Outside   = "outside" // what came from outside the seller pays back elsewhere
)

// NoteRequest asks for a credit note.
type NoteRequest struct {
	Lines  []NoteLine
	Reason string
	To     string // ToCredits or Outside
}

// NoteLine credits a line of the invoice: AmountMinor is 1 or more, and like the line's, so
// without an exclusive tax.
type NoteLine struct {
	N           int
	AmountMinor int64
}

// Note is a credit note, and what it does.
type Note struct {
	// Invoice has negative amounts and is paid. Whoever stores it gives it ID, CustomerKey and
	// MadeAt, and numbers it with Finalize.
	Invoice billing.Invoice
	// Whole says that nothing is left of the credited invoice: its status becomes credited.
	Whole bool
	// Money says where the total goes, tax included. First less is owed, as far as something is open.
	Money billing.NoteMoney
	// Returned is what goes back to credits, Money.ReturnedMinor in all.
	Returned []Applied
}

// Applied is what a credit pays of an invoice, or gets back.
type Applied struct {
	Credit  string // its id
	Kind    string // of the credit
	Payment int    // n of the payment; 0: finalizing the invoice applied it
	Minor   int64  // above 0; less what was returned already
}

// CreditNote credits lines of an invoice. earlier are all credit notes of it so far, and lines says how
// each line stands, by n. applied is what credits pay of the invoice, in the order in which they came.
// The tax is that of all that is credited then, less that of what was credited before, at the invoice's
// rates. So the notes of a whole invoice add up to its tax.
//
// Errors: model.FieldErrors for a request that no invoice could meet; billing.StateError for an invoice
// that is neither finalized nor paid, and for a credit note; billing.ErrTooMuch, with details, for more
// than is left of a line or of the total. A line that is not above 0 has nothing left.
func CreditNote(inv *billing.Invoice, earlier []billing.Invoice, lines map[int]Standing, applied []Applied, request NoteRequest) (Note, error) {
	if err := request.check(inv); err != nil {
		return Note{}, err
	}
	if err := creditable(inv); err != nil {
		return Note{}, err
	}
	left := max(0, inv.SubtotalMinor) // a total has something left while its subtotal has
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
			most = 0 // even if corrections lifted it: those can be credited themselves
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

// divide says where the money goes. Less is owed first. Of the rest the seller pays out, or carries to a
// new credit, at most what came from outside, over all notes: payments, and credits that were paid for.
// What other credits paid returns to them, the last that was applied first.
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

// check says what no invoice with these lines could meet.
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

// creditable refuses an invoice whose status allows no note.
func creditable(inv *billing.Invoice) error {
	switch {
	case inv.Kind == billing.KindCreditNote:
		return &billing.StateError{Status: "a credit note", Want: "only invoices can be credited"}
	case inv.Status == billing.StatusPaid, inv.Status == billing.StatusFinalized:
		return nil
	}
	return &billing.StateError{Status: inv.Status, Want: "only invoices that are finalized or paid can be credited"}
}

// noteLine is the n-th line of a note. It credits a line of the invoice.
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

// RatesIn are the taxes of an invoice as they were when it was made.
func RatesIn(inv *billing.Invoice) []rating.Tax {
	rates := make([]rating.Tax, len(inv.Taxes))
	for i, t := range inv.Taxes {
		rates[i] = rating.Tax{Name: t.Name, Percent: t.Percent, Inclusive: t.Inclusive}
	}
	return rates
}
