package main

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v85"

	"quotad/client"
)

// pay records Stripe's payment of an invoice in quotad. The payment's id contains the id of Stripe's invoice, so
// the payment counts once even if it is recorded repeatedly.
func (b *bridge) pay(ctx context.Context, q *client.Invoice, s *stripe.Invoice) error {
	id := *q.ID
	if s.Metadata[metaSettled] == outside {
		return b.both(ctx, q, s)
	}
	if s.AmountPaid == 0 {
		b.forget(id)
		if q.Status == statusFinalized && q.OpenMinor > 0 {
			return person("unpaid", s.ID, "Stripe has invoice %s as paid and was paid nothing for it: it is below the least amount that Stripe charges, or the customer's balance or a credit note at Stripe took it. In quotad %d %s are open, in minor units",
				number(q), q.OpenMinor, q.Currency)
		}
		return nil
	}
	m, err := moneyOf(q.Currency)
	if err != nil {
		return err
	}
	minor, ok := m.quotad(s.AmountPaid)
	if !ok {
		return person("amount", s.ID, "Stripe was paid %d of invoice %s, which is no whole amount of quotad's: note it there by hand", s.AmountPaid, number(q))
	}
	paid, err := b.quotad.PayInvoice(ctx, id, client.PayRequest{AmountMinor: &minor, Reference: "Stripe " + s.ID, ID: new("stripe:" + s.ID)})
	switch answered(err) {
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusNotFound:
		b.forget(id)
		return person("payment", s.ID, "Stripe was paid %d %s of invoice %s, in minor units, and quotad does not take it: %v. The invoice is %s there, and %d are open. Give the money back at Stripe, or note it by hand",
			minor, q.Currency, number(q), err, q.Status, q.OpenMinor)
	}
	if err != nil {
		return err
	}
	b.forget(id)
	if q.OpenMinor != paid.OpenMinor {
		b.paid.Add(1)
		b.log.Info("a payment was noted", "invoice", id, "number", number(q), "stripe", s.ID, "amount_minor", minor, "currency", q.Currency)
	}
	if paid.Status == statusFinalized && paid.OpenMinor > 0 {
		return person("rest", s.ID, "Stripe has invoice %s as paid, and %d %s are still open in quotad, in minor units: a balance or a credit note at Stripe took them, or the payment was reversed in quotad",
			number(q), paid.OpenMinor, q.Currency)
	}
	return nil
}

// both handles an invoice that was paid outside of Stripe. If the customer has also paid at Stripe, before
// Stripe learned of the other payment, both reports this to a person.
func (b *bridge) both(ctx context.Context, q *client.Invoice, s *stripe.Invoice) error {
	params := &stripe.InvoicePaymentListParams{Invoice: stripe.String(s.ID), Status: stripe.String("paid")}
	params.Limit = stripe.Int64(100)
	var paid int64
	for p, err := range b.stripe.V1InvoicePayments.List(ctx, params).All(ctx) {
		if err != nil {
			return err
		}
		if p.Payment != nil && (p.Payment.Type == stripe.InvoicePaymentPaymentTypePaymentIntent || p.Payment.Type == stripe.InvoicePaymentPaymentTypeCharge) {
			paid += p.AmountPaid
		}
	}
	b.forget(*q.ID)
	if paid > 0 {
		return person("twice", s.ID, "invoice %s was paid elsewhere, and Stripe was paid %d of it, too, in its minor units: give the money back there",
			number(q), paid)
	}
	return nil
}
