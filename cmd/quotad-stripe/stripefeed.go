package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v85"
)

// Types of Stripe's events that the bridge handles, whether it receives them by webhook or by polling.
var stripeTypes = []string{
	"invoice.paid", "invoice.voided", "invoice.marked_uncollectible",
	"charge.refunded", "charge.dispute.created",
}

const (
	// overlap is the time in seconds for which older events are requested again, because events may appear in
	// another order than that of their seconds.
	overlap = 60 * 60
	// stripeKeeps is the time for which Stripe keeps events, in seconds.
	stripeKeeps = 30 * daySeconds
)

// followStripe polls Stripe for new events, to handle events that the webhook missed.
func (b *bridge) followStripe(ctx context.Context) error {
	now := time.Now().Unix()
	var since int64
	b.store.read(func(s *state) { since = max(s.StripeSince-overlap, now-stripeKeeps) })
	params := &stripe.EventListParams{Types: stripe.StringSlice(stripeTypes), CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: since}}
	params.Limit = stripe.Int64(100)
	handled := map[string]int64{} // the order of events does not matter, because settle reads the named invoice
	for e, err := range b.stripe.V1Events.List(ctx, params).All(ctx) {
		if err != nil {
			return err
		}
		var seen bool
		b.store.read(func(s *state) { _, seen = s.StripeSeen[e.ID] })
		if seen {
			continue
		}
		if err := b.hear(ctx, e); err != nil {
			return err
		}
		handled[e.ID] = e.Created
	}
	if len(handled) == 0 {
		return nil
	}
	b.store.change(func(s *state) {
		for id, at := range handled {
			s.StripeSeen[id] = at
			s.StripeSince = max(s.StripeSince, at)
		}
		for id, at := range s.StripeSeen {
			if at < s.StripeSince-overlap {
				delete(s.StripeSeen, id)
			}
		}
	})
	return nil
}

// stripeObject contains the fields that the bridge reads from an event's object.
type stripeObject struct {
	ID            string            `json:"id"`
	Amount        int64             `json:"amount"`
	Refunded      int64             `json:"amount_refunded"`
	Currency      string            `json:"currency"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent json.RawMessage   `json:"payment_intent"`
}

// hear handles one of Stripe's events. It does not use the amounts in the event, because settle reads the
// invoice itself.
func (b *bridge) hear(ctx context.Context, e *stripe.Event) error {
	var object stripeObject
	if e.Data == nil {
		return nil
	}
	if err := json.Unmarshal(e.Data.Raw, &object); err != nil {
		b.log.Error("an event of Stripe's cannot be read", "event", e.ID, "type", e.Type, "error", err)
		return nil
	}
	switch e.Type {
	case stripe.EventTypeInvoicePaid, stripe.EventTypeInvoiceVoided, stripe.EventTypeInvoiceMarkedUncollectible:
		if id := object.Metadata[metaInvoice]; plausible(id) {
			b.noted(id, object.ID)
		}
	case stripe.EventTypeChargeRefunded, stripe.EventTypeChargeDisputeCreated:
		return b.returned(ctx, e, &object)
	}
	return nil
}

// noted queues an invoice that one of Stripe's events names.
func (b *bridge) noted(id, at string) {
	other := ""
	b.store.change(func(s *state) {
		if known := s.Open[id]; known == "" {
			s.Open[id] = at
		} else if known != at {
			other = known
		}
		s.ask(id, time.Now())
	})
	if other != "" {
		b.tell(notice{
			ID: "several " + id, Invoice: id, Stripe: at,
			Text: fmt.Sprintf("Stripe has two invoices of one of quotad's, %s and %s: what %s was paid is not noted", other, at, at),
		})
	}
}

// returned reports to a person that money was refunded or disputed for one of quotad's invoices. quotad cannot
// know whether the customer owes the money again, so the bridge reverses no payment.
func (b *bridge) returned(ctx context.Context, e *stripe.Event, object *stripeObject) error {
	var intent string
	if json.Unmarshal(object.PaymentIntent, &intent) != nil || intent == "" {
		return nil // invoices are always paid by payment intents
	}
	params := &stripe.InvoicePaymentListParams{Payment: &stripe.InvoicePaymentListPaymentParams{
		Type: stripe.String("payment_intent"), PaymentIntent: stripe.String(intent),
	}}
	params.AddExpand("data.invoice")
	what, amount := "given back", object.Refunded
	if e.Type == stripe.EventTypeChargeDisputeCreated {
		what, amount = "disputed", object.Amount
	}
	n := notice{ID: fmt.Sprintf("%s %s %d", e.Type, object.ID, amount), Stripe: object.ID}
	for p, err := range b.stripe.V1InvoicePayments.List(ctx, params).All(ctx) {
		if status := answered(err); status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
			// A retry would have the same result and would block all later events.
			n.Text = fmt.Sprintf("%d %s were %s at Stripe, in its minor units, and whether that is of an invoice of quotad's could not be read: %v", amount,
				object.Currency, what, plain(err))
			b.tell(n)
			return nil
		}
		if err != nil {
			return err
		}
		if p.Invoice == nil || !plausible(p.Invoice.Metadata[metaInvoice]) {
			continue
		}
		n.Invoice, n.Text = p.Invoice.Metadata[metaInvoice], fmt.Sprintf(
			"%d %s of a payment of invoice %s were %s at Stripe, in its minor units. quotad has the payment still: reverse it there if the customer owes it again, or make a credit note",
			amount, object.Currency, p.Invoice.Metadata[metaNumber], what)
		b.tell(n)
	}
	return nil
}
