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

// told contains the event types for each audit action on an invoice. Finalization is not included, because it
// always writes its own events.
var told = map[string][]string{"void": {events.InvoiceVoid}, "credit": {events.InvoiceCredited}}

// invoiceEvent returns an event with the state of an invoice at an instant, µs.
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

// paymentEvent returns the event of a recorded payment, or of a reversed payment if word is reverse. i is the
// invoice after the operation, and at is the instant, µs.
func paymentEvent(word string, i *billing.Invoice, p *paymentAudit, at int64) events.Event {
	what, amount, open := events.PaymentNoted, p.AmountMinor, i.OpenMinor()
	if word == "reverse" {
		what = events.PaymentReversed
	}
	return events.Event{Type: what, At: at, Customer: i.Customer, TestClock: i.TestClock, Data: client.EventData{
		ID: i.ID, Number: i.Number, Kind: p.Kind, Currency: i.Currency, AmountMinor: &amount, OpenMinor: &open,
	}}
}

// draftEvents returns the events of new drafts, including the events of drafts that are held as soon as they are
// created.
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

// finalEvents returns the events of drafts that were due. A draft that was already held and remains held has
// no event.
func finalEvents(due []*Task) (all []events.Event) {
	for _, t := range due {
		i := &t.Result.Invoice
		switch {
		case i.Held != "" && t.draft.Held == "":
			all = append(all, invoiceEvent(events.InvoiceHeld, i, t.at))
		case i.Held != "":
		default:
			all = append(all, invoiceEvent(events.InvoiceFinalized, i, t.at))
			if i.Status == billing.StatusPaid { // the amount due is 0
				all = append(all, invoiceEvent(events.InvoicePaid, i, t.at))
			}
		}
	}
	return all
}

// TellOverdue writes the overdue events of finalized invoices. at contains the instant of each event, µs.
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

// creditEvent returns an event of a customer's credit with its remaining amount. For an erased customer the
// credit's id is omitted, because the id may contain a person's name.
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
