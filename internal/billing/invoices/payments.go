package invoices

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/postgres"
)

// Once identifies a request of a customer by its id, which is never reused. An empty ID is a request without
// an id.
type Once struct {
	ID      string
	Payload int64 // the content of the request as one number
}

// request returns the columns of the request; both are nil without an id.
func (o Once) request() (id *string, payload *int64) {
	if o.ID == "" {
		return nil, nil
	}
	return &o.ID, &o.Payload
}

// done reports whether the request was already executed. statement selects the payload of the earlier
// request. If that payload differs, the error is billing.ErrOtherPayload.
func (o Once) done(ctx context.Context, tx pgx.Tx, statement string, customer int64) (bool, error) {
	if o.ID == "" {
		return false, nil
	}
	var stored int64
	switch err := tx.QueryRow(ctx, statement, customer, o.ID).Scan(&stored); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err == nil && stored != o.Payload:
		return false, billing.ErrOtherPayload
	default:
		return err == nil, err
	}
}

const setStatus = `UPDATE invoices SET status = $2 WHERE id = $1::uuid AND status <> $2`

const (
	paidByRequest     = `SELECT payload FROM payments WHERE customer_id = $1 AND request = $2`
	reversedByRequest = `SELECT reversal_payload FROM payments WHERE customer_id = $1 AND reversal_request = $2`
)

const insertPayment = `
	INSERT INTO payments (invoice_id, n, customer_id, kind, amount_minor, reference, at, request, payload)
	VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9)`

const reversePayment = `
	UPDATE payments SET reversed_at = $3, reversal_reason = $4, reversal_request = $5, reversal_payload = $6
	WHERE invoice_id = $1::uuid AND n = $2`

var notPayable = "only invoices that are finalized and not paid yet can be paid"

// Pay records that a finalized invoice was paid now: amount in minor units, or the whole open amount if
// amount is 0. reference is a text for people. Errors: billing.ErrUnknownInvoice, billing.StateError,
// billing.ErrMoreThanOpen, billing.ErrOtherPayload, billing.ErrTooManyPayments.
func (is *Invoices) Pay(ctx context.Context, id string, amount int64, reference string, once Once) (*billing.Invoice, error) {
	action := &act{word: "pay"}
	return is.onInvoice(ctx, id, action, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		if done, err := once.done(ctx, tx, paidByRequest, c.ID); done || err != nil {
			action.word = ""
			return err
		}
		open := i.OpenMinor()
		switch {
		case i.Status != billing.StatusFinalized:
			return &billing.StateError{Status: i.Status, Want: notPayable}
		case amount > open:
			return fmt.Errorf("%w: %d is open, in minor units", billing.ErrMoreThanOpen, open)
		case amount == 0:
			amount = open
		}
		b := new(pgx.Batch)
		p, err := queuePayment(b, c, i, billing.Payment{Kind: billing.PaymentMoney, AmountMinor: amount, Reference: reference}, once)
		if err != nil {
			return err
		}
		action.payment = auditPayment(p)
		b.Queue(setStatus, id, i.StatusNow())
		return postgres.Send(ctx, tx, b)
	})
}

// queuePayment adds a payment to an invoice at the present instant of the customer's clock.
func queuePayment(b *pgx.Batch, c *accounts.Customer, i *billing.Invoice, p billing.Payment, once Once) (*billing.Payment, error) {
	if len(i.Payments) >= billing.MaxPayments {
		return nil, billing.ErrTooManyPayments
	}
	p.N, p.At = len(i.Payments)+1, c.Now
	request, payload := once.request()
	b.Queue(insertPayment, i.ID, p.N, c.ID, p.Kind, p.AmountMinor, text(p.Reference), p.At, request, payload)
	i.SetPayments(append(i.Payments, p))
	return &i.Payments[p.N-1], nil
}

// Reverse reverses the n-th payment of an invoice, for example a bounced debit, so the amount is open again.
// Credits of the payment are returned and remain valid for at least billing.ReturnedFor. Errors:
// billing.ErrUnknownInvoice, billing.ErrUnknownPayment, billing.ErrReversed, billing.ErrNoted,
// billing.ErrOtherPayload.
func (is *Invoices) Reverse(ctx context.Context, id string, n int, reason string, once Once) (*billing.Invoice, error) {
	action := &act{word: "reverse"}
	return is.onInvoice(ctx, id, action, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		if done, err := once.done(ctx, tx, reversedByRequest, c.ID); done || err != nil {
			action.word = ""
			return err
		}
		if n < 1 || n > len(i.Payments) {
			return billing.ErrUnknownPayment
		}
		p := &i.Payments[n-1]
		if p.ReversedAt != nil {
			return billing.ErrReversed
		}
		b := new(pgx.Batch)
		request, payload := once.request()
		b.Queue(reversePayment, id, n, c.Now, reason, request, payload)
		if p.Kind == billing.PaymentCredits {
			if err := is.returnPayment(ctx, tx, b, c, i, p); err != nil {
				return err
			}
		}
		p.ReversedAt, p.Reason = &c.Now, reason
		action.payment = auditPayment(p)
		b.Queue(setStatus, id, i.StatusNow())
		return postgres.Send(ctx, tx, b)
	})
}

// returnPayment returns a payment's credits. If a credit note has returned some of them already, it fails.
func (is *Invoices) returnPayment(ctx context.Context, tx pgx.Tx, b *pgx.Batch, c *accounts.Customer, i *billing.Invoice, p *billing.Payment) error {
	all, err := appliedTo(ctx, tx, i)
	if err != nil {
		return err
	}
	var applied []assembly.Applied
	sum := int64(0)
	for _, a := range all {
		if a.Payment == p.N {
			applied, sum = append(applied, a), sum+a.Minor
		}
	}
	if sum != p.AmountMinor {
		return billing.ErrNoted
	}
	return queueReturned(b, c, i, applied)
}

func auditPayment(p *billing.Payment) *paymentAudit {
	return &paymentAudit{p.N, p.Kind, p.AmountMinor, p.Reference, p.Reason}
}
