package invoices

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// ApplyCredits pays the open amount of a finalized invoice with the customer's unexpired credits, in their
// order. The result is one payment of kind credits. Errors: billing.ErrUnknownInvoice, billing.StateError,
// billing.ErrNoCredits, billing.ErrTooManyPayments.
func (is *Invoices) ApplyCredits(ctx context.Context, id string) (*billing.Invoice, error) {
	action := &act{word: "apply_credits"}
	return is.onInvoice(ctx, id, action, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		if i.Status != billing.StatusFinalized {
			return &billing.StateError{Status: i.Status, Want: notPayable}
		}
		credits, err := leftOf(ctx, tx, c.ID)
		if err != nil {
			return err
		}
		paid := billing.Payment{Kind: billing.PaymentCredits}
		applied := assembly.Apply(credits, i.Currency, i.OpenMinor(), c.Now)
		for _, e := range applied {
			paid.AmountMinor -= e.AmountMinor
		}
		if paid.AmountMinor == 0 {
			return billing.ErrNoCredits
		}
		b := new(pgx.Batch)
		p, err := queuePayment(b, c, i, paid, Once{})
		if err != nil {
			return err
		}
		entries := make([]entryRow, len(applied))
		for n, e := range applied {
			entries[n] = entryRow{Customer: c.ID, Credit: e.Credit, Kind: e.Kind, AmountMinor: e.AmountMinor, At: c.Now, PaidInvoice: &i.ID, PaidN: &p.N}
		}
		if err := postgres.QueueRows(b, bookEntries, entries); err != nil {
			return err
		}
		action.payment = auditPayment(p)
		b.Queue(setStatus, id, i.StatusNow())
		return postgres.Send(ctx, tx, b)
	})
}

// leftOf returns a customer's credits that have a remaining amount.
func leftOf(ctx context.Context, tx pgx.Tx, customer int64) (credits []billing.Credit, err error) {
	var id int64
	var c billing.Credit
	err = postgres.ForEach(ctx, tx, []any{&id, &c.ID, &c.Kind, &c.AmountMinor, &c.LeftMinor, &c.Currency, &c.Priority, &c.ExpiresAt, &c.At, &c.Seq}, func() error {
		credits = append(credits, c)
		return nil
	}, creditsLeft, []int64{customer})
	return credits, err
}

const withdrawnByRequest = `SELECT payload FROM credit_entries WHERE customer_id = $1 AND request = $2`

const withdrawnMinor = `SELECT -amount_minor FROM credit_entries WHERE customer_id = $1 AND request = $2`

// Withdrawn is the result of a withdrawal from a credit.
type Withdrawn struct {
	Credit   billing.Credit // the credit after the withdrawal
	Minor    int64          // the withdrawn amount
	Clock    string         // the customer's test clock; "" is PostgreSQL's time
	Replayed bool
}

// Withdraw withdraws amount, in minor units, from the remaining amount of a credit, or all of the rest if
// amount is 0. A repeated request has no further effect. Errors: the errors of accounts.OnCustomer,
// billing.ErrUnknownCredit, billing.ErrMoreThanLeft, billing.ErrOtherPayload.
func (is *Invoices) Withdraw(ctx context.Context, key, credit string, amount int64, reason string, once Once) (out Withdrawn, err error) {
	err = is.accounts.OnCustomer(ctx, key, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer) error {
		out.Clock = c.Clock
		done, err := once.done(ctx, tx, withdrawnByRequest, c.ID)
		if err != nil {
			return err
		}
		if out.Replayed = done; !done {
			if err := withdraw(ctx, tx, c, credit, amount, reason, once); err != nil {
				return err
			}
		}
		if out.Credit, err = readCredit(ctx, tx, c.ID, credit); err != nil {
			return err
		}
		return tx.QueryRow(ctx, withdrawnMinor, c.ID, once.ID).Scan(&out.Minor)
	})
	return out, err
}

func readCredit(ctx context.Context, tx pgx.Tx, customer int64, id string) (billing.Credit, error) {
	rows, _ := tx.Query(ctx, creditByID, customer, id)
	c, err := pgx.CollectExactlyOneRow(rows, scanCredit)
	if errors.Is(err, pgx.ErrNoRows) {
		err = billing.ErrUnknownCredit
	}
	return c, err
}

func withdraw(ctx context.Context, tx pgx.Tx, c *accounts.Customer, credit string, amount int64, reason string, once Once) error {
	before, err := readCredit(ctx, tx, c.ID, credit)
	if err != nil {
		return err
	}
	if amount == 0 {
		amount = before.LeftMinor
	}
	if amount > before.LeftMinor || amount == 0 {
		return fmt.Errorf("%w: %d is left, in minor units", billing.ErrMoreThanLeft, before.LeftMinor)
	}
	request, payload := once.request()
	b := new(pgx.Batch)
	err = postgres.QueueRows(b, bookEntries, []entryRow{{
		Customer: c.ID, Credit: credit, Kind: billing.EntryWithdrawn, AmountMinor: -amount, At: c.Now, Request: request, Payload: payload, Reason: &reason,
	}})
	if err == nil {
		of := creditRow{ID: credit, Kind: before.Kind, AmountMinor: before.AmountMinor, Currency: before.Currency}
		tell := creditEvent(events.CreditWithdrawn, c, &of, before.LeftMinor-amount, c.Now)
		tell.Data.WithdrawnMinor = &amount
		err = events.Queue(b, tell)
	}
	if err == nil {
		err = postgres.Send(ctx, tx, b)
	}
	if err != nil {
		return err
	}
	return store.Audit(ctx, tx, plans.Audited{
		Action: "withdraw", Target: "customers/" + c.Key + "/credits/" + credit, Customer: c.ID,
		Before: creditLeft{LeftMinor: before.LeftMinor}, After: creditLeft{before.LeftMinor - amount, reason},
	})
}
