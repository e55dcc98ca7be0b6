package invoices

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/events"
)

// told are the types of the events that tell of what was done to an invoice, by the words of the audit
// trail. Finalizing tells by itself, also where nobody asks for it.
var told = map[string][]string{"void": {events.InvoiceVoid}, "credit": {events.InvoiceCredited}}

// invoiceEvent tells of an invoice as it is from an instant on, µs.
func invoiceEvent(what string, i *billing.Invoice, at int64) events.Event {
	total, due := i.TotalMinor, i.AmountDueMinor
	e := events.Event{Type: what, At: at, Customer: i.Customer, TestClock: i.TestClock, Data: client.EventData{
		ID: i.ID, Number: i.Number, Kind: i.Kind, Status: i.Status, Currency: i.Currency, TotalMinor: &total, AmountDueMinor: &due,
	}}
	if i.Status != billing.StatusDraft {
		credited := i.CreditedMinor
		e.Data.CreditedMinor = &credited
	}
	return e
}

// paymentEvent returns the event of a payment that was noted or, if the word is reverse, reversed. i is the invoice
// afterwards, and the instant is in µs.
func paymentEvent(word string, i *billing.Invoice, p *paymentAudit, at int64) events.Event {
	what, amount, open := events.PaymentNoted, p.AmountMinor, i.OpenMinor()
	if word == "reverse" {
		what = events.PaymentReversed
	}
	return events.Event{Type: what, At: at, Customer: i.Customer, TestClock: i.TestClock, Data: client.EventData{
		ID: i.ID, Number: i.Number, Kind: p.Kind, Currency: i.Currency, AmountMinor: &amount, OpenMinor: &open,
	}}
}

// draftEvents tell of new drafts, and of those that are held from the first.
func draftEvents(drafts []*Task) (all []events.Event) {
	for _, t := range drafts {
		i := &t.Result.Invoice
		all = append(all, invoiceEvent(events.InvoiceDrafted, i, t.at))
		if i.Held != "" {
			all = append(all, invoiceEvent(events.InvoiceHeld, i, t.at))
		}
	}
	return all
}

// finalEvents tell what became of drafts that were due. One that was held already tells nothing more.
func finalEvents(due []*Task) (all []events.Event) {
	for _, t := range due {
		i := &t.Result.Invoice
		switch {
		case i.Held != "" && t.draft.Held == "":
			all = append(all, invoiceEvent(events.InvoiceHeld, i, t.at))
		case i.Held != "":
		default:
			all = append(all, invoiceEvent(events.InvoiceFinalized, i, t.at))
			if i.Status == billing.StatusPaid { // nothing was due
				all = append(all, invoiceEvent(events.InvoicePaid, i, t.at))
			}
		}
	}
	return all
}

// TellOverdue tells of finalized invoices that they are overdue, each at an instant, µs.
func TellOverdue(ctx context.Context, tx pgx.Tx, ids []string, at []int64) error {
	found, err := invoicesOf(ctx, tx, readDrafts, ids)
	if err != nil {
		return err
	}
	all := make([]events.Event, len(found))
	for n, i := range found {
		all[n] = invoiceEvent(events.InvoiceOverdue, i, at[slices.Index(ids, i.ID)])
		open := i.OpenMinor()
		all[n].Data.OpenMinor = &open
	}
	return events.Write(ctx, tx, all...)
}

// creditEvent tells of a credit of a customer, of which so much is left. An erased customer's has no
// id: somebody may have named a person by it.
func creditEvent(what string, c *accounts.Customer, credit *creditRow, left, at int64) events.Event {
	amount := credit.AmountMinor
	e := events.Event{Type: what, At: at, Customer: c.ID, TestClock: c.Clock, Data: client.EventData{
		ID: credit.ID, Kind: credit.Kind, Currency: credit.Currency, AmountMinor: &amount, LeftMinor: &left,
	}}
	if c.Erased {
		e.Data.ID = ""
	}
	return e
}
