package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"quotad/client"
)

// The statuses of quotad's invoices.
const (
	statusDraft     = "draft"
	statusFinalized = "finalized"
	statusPaid      = "paid"
)

// settle makes an invoice agree in quotad and at Stripe. It reads the invoice's state in both, does the next
// missing step, and continues from the resulting state. Therefore it may be interrupted at any step and called
// again, in any order of events.
func (b *bridge) settle(ctx context.Context, id string, j *job) error {
	q, err := b.quotad.Invoice(ctx, id)
	switch {
	case answered(err) == http.StatusNotFound:
		return person("unknown", "", "quotad has no invoice %s, and Stripe or an event names it: is Stripe's account that of another quotad, too?", id)
	case err != nil:
		return err
	case q.ID == nil || *q.ID != id:
		return fmt.Errorf("quotad answered another invoice than %s", id)
	case q.Kind == "credit_note":
		if q.Of != nil {
			b.store.change(func(s *state) { s.ask(*q.Of, time.Now()) })
		}
		return nil
	case q.Status == statusDraft, !b.sends(q.TestClock != ""):
		return nil
	case q.AmountDueMinor == 0 && len(q.Payments) == 0:
		return nil // nothing was ever due, so the invoice is not at Stripe
	}
	defer b.alone(q.Customer)()
	s, c, err := b.find(ctx, &q)
	if err != nil {
		return err
	}
	if s == nil {
		if q.Status != statusFinalized || q.OpenMinor == 0 {
			return nil
		}
		if s, err = b.draft(ctx, &q, c, j); err != nil {
			return err
		}
	}
	if err = checkFound(&q, s); err != nil {
		return err
	}
	if s.Status == stripe.InvoiceStatusDraft {
		if s, err = b.finish(ctx, &q, s, j); err != nil || s == nil {
			return err
		}
	}
	return b.agree(ctx, &q, s, j)
}

// checkFound returns a personError if s contains the id of q but cannot have been created for q. This is so if s
// has another currency, or was finalized with a higher total than was ever due. For example, a copy that
// somebody created at Stripe also contains the id.
func checkFound(q *client.Invoice, s *stripe.Invoice) error {
	if !strings.EqualFold(string(s.Currency), q.Currency) {
		return person("foreign", s.ID, "Stripe's invoice %s carries the id of invoice %s and is in %s, not in %s. Nothing was noted. Take %s off its metadata: the bridge then makes the right one",
			s.ID, number(q), strings.ToUpper(string(s.Currency)), q.Currency, metaInvoice)
	}
	if s.Status == stripe.InvoiceStatusDraft || s.Status == stripe.InvoiceStatusVoid {
		return nil // finish compares the total of a draft
	}
	m, err := moneyOf(q.Currency)
	if err != nil {
		return err
	}
	if due, ok := m.stripe(q.AmountDueMinor); ok && s.Total > due {
		return person("foreign", s.ID, "Stripe's invoice %s carries the id of invoice %s and comes to %d, and only %d was ever due, in Stripe's minor units. Nothing was noted. Take %s off its metadata: the bridge then makes the right one",
			s.ID, number(q), s.Total, due, metaInvoice)
	}
	return nil
}

// alone waits until no other invoice of the customer is being settled, and returns a function that ends this
// exclusive access. It prevents two invoices from creating the same customer at the same time.
func (b *bridge) alone(customer string) (done func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(customer))
	turn := &b.customers[h.Sum32()%uint32(len(b.customers))]
	turn.Lock()
	return turn.Unlock
}

// agree settles an invoice that Stripe has finalized.
func (b *bridge) agree(ctx context.Context, q *client.Invoice, s *stripe.Invoice, j *job) error {
	switch s.Status {
	case stripe.InvoiceStatusPaid:
		return b.pay(ctx, q, s)
	case stripe.InvoiceStatusVoid:
		b.forget(*q.ID)
		if q.Status == statusFinalized && q.OpenMinor > 0 {
			return person("voided", s.ID, "invoice %s is void at Stripe, and %d %s of it are open in quotad, in minor units: void or credit it there, too, or collect it by hand",
				number(q), q.OpenMinor, q.Currency)
		}
		return nil
	case stripe.InvoiceStatusUncollectible:
		if q.Status == statusFinalized {
			return person("uncollectible", s.ID,
				"invoice %s was given up at Stripe, and %d %s of it are open in quotad, in minor units: void or credit it there, too, or collect it by hand",
				number(q), q.OpenMinor, q.Currency)
		}
	case stripe.InvoiceStatusOpen:
	default:
		return person("status", s.ID, "invoice %s has the status %q at Stripe, which this bridge does not know", number(q), s.Status)
	}
	switch {
	case q.Status == statusFinalized:
		return b.lower(ctx, q, s, j)
	case q.Status == statusPaid:
		return b.paidOutside(ctx, q, s, j)
	case s.AmountPaid > 0: // the invoice is void or credited in quotad
		return person("part", s.ID, "invoice %s is %s in quotad, and Stripe has been paid a part of it: give the money back there, and close the invoice",
			number(q), q.Status)
	}
	params := &stripe.InvoiceVoidInvoiceParams{}
	params.IdempotencyKey = key(q, j, "void", s.ID)
	if _, err := b.stripe.V1Invoices.VoidInvoice(ctx, s.ID, params); err != nil {
		return err
	}
	b.forget(*q.ID)
	b.log.Info("an invoice was voided at Stripe", "invoice", *q.ID, "number", number(q), "stripe", s.ID)
	return nil
}

// key returns the idempotency key of a step. at is the id of the invoice at Stripe, if there is one. The key
// contains the id of quotad's invoice, which is unique across installations and restored databases, unlike the
// id of an event.
func key(q *client.Invoice, j *job, step, at string) *string {
	return stripe.String(fmt.Sprintf("quotad-%s-%s-%s-%d", *q.ID, step, at, j.Refused))
}

// lower reduces the amount that Stripe collects to the open amount in quotad, with a credit note at Stripe. This
// is necessary after a credit note or a payment in quotad.
func (b *bridge) lower(ctx context.Context, q *client.Invoice, s *stripe.Invoice, j *job) error {
	m, err := moneyOf(q.Currency)
	if err != nil {
		return err
	}
	open, ok := m.stripe(q.OpenMinor)
	if !ok {
		return person("amount", s.ID, "of invoice %s %d %s are open in quotad, in minor units, and Stripe cannot write that: lower it there by hand",
			number(q), q.OpenMinor, q.Currency)
	}
	// Partial payments at Stripe are recorded in quotad only when the invoice is fully paid, so quotad's open
	// amount still includes them.
	less := s.AmountRemaining + s.AmountPaid - open
	switch {
	case less == 0:
		return nil
	case less < 0:
		return person(fmt.Sprintf("below %d", -less), s.ID,
			"Stripe collects %d less of invoice %s than is open in quotad, in Stripe's minor units: a payment was reversed in quotad, or a credit note was made at Stripe", -less, number(q))
	case less > s.AmountRemaining:
		return person("part", s.ID, "Stripe has been paid more of invoice %s than is open in quotad: give the difference back there, and close the invoice",
			number(q))
	}
	params := &stripe.CreditNoteCreateParams{
		Invoice: stripe.String(s.ID), Amount: stripe.Int64(less), EmailType: stripe.String("none"),
		Memo:     stripe.String("Paid or credited outside of Stripe"),
		Metadata: map[string]string{metaInvoice: *q.ID},
	}
	params.IdempotencyKey = key(q, j, fmt.Sprintf("lower-%d-%d", s.AmountRemaining, less), s.ID)
	note, err := b.stripe.V1CreditNotes.Create(ctx, params)
	if err != nil {
		return err
	}
	b.log.Info("an invoice was lowered at Stripe", "invoice", *q.ID, "number", number(q), "stripe", s.ID, "credit_note", note.ID, "amount", less)
	return nil
}

// paidOutside marks an invoice at Stripe as paid outside of Stripe. It first sets metadata on the invoice, so
// that the bridge does not record this in quotad as a payment.
func (b *bridge) paidOutside(ctx context.Context, q *client.Invoice, s *stripe.Invoice, j *job) error {
	if s.AmountPaid > 0 {
		return person("part", s.ID, "invoice %s is paid in quotad, and Stripe has been paid a part of it, too: give that back there, and close the invoice",
			number(q))
	}
	if s.Metadata[metaSettled] != outside {
		mark := &stripe.InvoiceUpdateParams{Metadata: map[string]string{metaSettled: outside}}
		if _, err := b.stripe.V1Invoices.Update(ctx, s.ID, mark); err != nil {
			return err
		}
	}
	params := &stripe.InvoicePayParams{PaidOutOfBand: stripe.Bool(true)}
	params.IdempotencyKey = key(q, j, outside, s.ID)
	if _, err := b.stripe.V1Invoices.Pay(ctx, s.ID, params); err != nil {
		return err
	}
	b.forget(*q.ID)
	b.log.Info("an invoice was marked at Stripe as paid elsewhere", "invoice", *q.ID, "number", number(q), "stripe", s.ID)
	return nil
}
