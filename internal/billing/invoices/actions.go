package invoices

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

const customerOfInvoice = `SELECT customer_id FROM invoices WHERE id = $1::uuid`

// onInvoice runs do on an invoice as it is stored, under the lock of its customer's billing. It
// returns the invoice as it is afterwards. action is what the audit trail says of it. do may take
// it back, where it changes nothing.
func (is *Invoices) onInvoice(ctx context.Context, id string, action *act, do func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error) (after *billing.Invoice, err error) {
	if !validID(id) {
		return nil, billing.ErrUnknownInvoice
	}
	err = is.accounts.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var of int64
		if err := tx.QueryRow(ctx, customerOfInvoice, id).Scan(&of); errors.Is(err, pgx.ErrNoRows) {
			return billing.ErrUnknownInvoice
		} else if err != nil {
			return err
		}
		c, err := is.accounts.Lock(ctx, tx, of)
		if err != nil {
			return err
		}
		found, err := invoicesOf(ctx, tx, readInvoice, id)
		if err != nil {
			return err
		}
		before := auditInvoice(found[0])
		if err := do(ctx, tx, c, found[0]); err != nil {
			return err
		}
		if err := is.accounts.SetDue(ctx, tx, of); err != nil {
			return err
		}
		if c.Erased {
			if err := accounts.ForgetBuyers(ctx, tx, of); err != nil {
				return err
			}
		}
		if found, err = is.present(ctx, tx, readInvoice, id); err != nil {
			return err
		}
		after = found[0]
		return action.record(ctx, tx, before, after)
	})
	if err != nil {
		return nil, err
	}
	return after, nil
}

// act is what is done to an invoice.
type act struct {
	word string      // "" for nothing
	note *creditNote // that was made
}

// record writes what was done into the audit trail.
func (a *act) record(ctx context.Context, tx pgx.Tx, before invoiceAudit, i *billing.Invoice) error {
	if a.word == "" {
		return nil
	}
	after := auditInvoice(i)
	after.CreditNote = a.note
	return store.Audit(ctx, tx, plans.Audited{Action: a.word, Target: "invoices/" + i.ID, Customer: i.Customer, Before: before, After: after})
}

// Finalize finalizes a draft now. Errors: billing.ErrUnknownInvoice, billing.StateError for what
// is no draft, billing.ErrHeld.
func (is *Invoices) Finalize(ctx context.Context, id string) (*billing.Invoice, error) {
	return is.onInvoice(ctx, id, &act{word: "finalize"}, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		if i.Status != billing.StatusDraft {
			return &billing.StateError{Status: i.Status, Want: "only drafts can be finalized"}
		}
		t := DraftTask(c, id, c.Now)
		if err := is.FinalizeDrafts(ctx, tx, []*Task{t}); err != nil {
			return err
		}
		if t.Err == nil && t.Result.Invoice.Held != "" {
			return fmt.Errorf("%w: %s", billing.ErrHeld, t.Result.Invoice.Held)
		}
		return t.Err
	})
}

const payInvoice = `UPDATE invoices SET status = 'paid', reference = $2, paid_at = $3, paid_minor = $4 WHERE id = $1::uuid`

// Pay says that a finalized invoice was paid now: all that is open. reference names the payment, for people. Errors:
// billing.ErrUnknownInvoice, billing.StateError.
func (is *Invoices) Pay(ctx context.Context, id, reference string) (*billing.Invoice, error) {
	return is.onInvoice(ctx, id, &act{word: "pay"}, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		if i.Status != billing.StatusFinalized {
			return &billing.StateError{Status: i.Status, Want: "only invoices that are finalized and not paid yet can be paid"}
		}
		_, err := tx.Exec(ctx, payInvoice, id, text(reference), c.Now, i.OpenMinor())
		return err
	})
}

const referredTo = `
	SELECT EXISTS (SELECT FROM invoice_lines l JOIN invoices i ON i.id = l.invoice_id WHERE l.of_invoice = $1::uuid AND i.status <> 'void')`

const voidInvoice = `UPDATE invoices SET status = 'void', void_reason = $2 WHERE id = $1::uuid`

// freeCharges lets the next invoice take the charges of one that became void.
const freeCharges = `UPDATE charges SET invoice_id = NULL WHERE customer_id = $1 AND invoice_id = $2::uuid`

// returnCredits books back what an invoice took of credits.
const returnCredits = `
	SELECT customer_id, credit_id, 'returned' AS kind, -amount_minor AS amount_minor, invoice_id, $2::bigint AS at
	FROM credit_entries WHERE invoice_id = $1::uuid AND kind = 'applied'`

// Void takes a finalized invoice back that was not paid. Its credits are returned. Its charges,
// corrections and unused go onto the reissue, a draft of the same period and prices, or without one
// onto the next invoice. What a draft gives back as unused of its base goes with it. Errors: billing.ErrUnknownInvoice, billing.StateError,
// billing.ErrReferred.
func (is *Invoices) Void(ctx context.Context, id, reason string, reissue bool) (*billing.Invoice, error) {
	return is.onInvoice(ctx, id, &act{word: "void"}, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		if i.Status != billing.StatusFinalized {
			return &billing.StateError{Status: i.Status, Want: "only invoices that are finalized and not paid can be void"}
		}
		var referred bool
		if err := tx.QueryRow(ctx, referredTo, id).Scan(&referred); err != nil {
			return err
		}
		stands, err := readStandings(ctx, tx, []string{id})
		if err != nil {
			return err
		}
		if referred || stands.anyUnused() {
			return billing.ErrReferred
		}
		rows, _ := tx.Query(ctx, returnCredits, id, c.Now)
		returned, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e entryRow, err error) {
			e.Invoice = &id
			var of any
			return e, row.Scan(&e.Customer, &e.Credit, &e.Kind, &e.AmountMinor, &of, &e.At)
		})
		if err != nil {
			return err
		}
		b := new(pgx.Batch)
		b.Queue(voidInvoice, id, reason)
		b.Queue(freeCharges, c.ID, id)
		if err := postgres.QueueRows(b, bookEntries, returned); err != nil {
			return err
		}
		err = postgres.Send(ctx, tx, b)
		if err == nil && reissue {
			err = is.reissue(ctx, tx, c, i)
		}
		if err == nil {
			err = leansOn(ctx, tx, i)
		}
		return err
	})
}

// leansOn is billing.ErrReferred where credit notes took what a line came to only by the corrections
// of an invoice, which is void now.
func leansOn(ctx context.Context, tx pgx.Tx, void *billing.Invoice) error {
	var raised []billing.Corrected
	var ids []string
	for n := range void.Lines {
		if l := &void.Lines[n]; l.Kind == billing.LineCorrection && l.AmountMinor > 0 {
			raised, ids = append(raised, billing.Corrected{Meter: l.Meter, Invoice: l.OfInvoice}), append(ids, l.OfInvoice)
		}
	}
	if len(raised) == 0 {
		return nil
	}
	stands, err := readStandings(ctx, tx, ids)
	for _, of := range raised {
		if line := stands.usage[of]; err == nil && line != nil && line.LeftMinor() < 0 {
			err = billing.ErrReferred
		}
	}
	return err
}

// reissue makes the draft that takes the place of a void invoice. Base in advance stays as it
// was charged: the terms of the following period may have changed since.
func (is *Invoices) reissue(ctx context.Context, tx pgx.Tx, c *accounts.Customer, void *billing.Invoice) error {
	if err := c.RecallBuyer(ctx, tx, void); err != nil {
		return err
	}
	tasks, err := draftTasks(ctx, tx, []*billing.Invoice{void}, map[int64]*accounts.Customer{c.ID: c})
	if err != nil {
		return err
	}
	t := tasks[0]
	t.draft, t.fresh, t.fixed, t.at = nil, true, []billing.Line{}, c.Now
	for _, line := range void.Lines {
		if line.Kind == billing.LineBase && (void.Kind == billing.KindOpening || line.From >= t.Period.End) {
			t.fixed = append(t.fixed, line)
		}
	}
	if err := is.Assemble(ctx, tx, tasks); err != nil {
		return err
	}
	if t.Err != nil {
		return t.Err
	}
	i := &t.Result.Invoice
	i.Of, i.PeriodStart, i.PeriodEnd = void.ID, void.PeriodStart, void.PeriodEnd
	b := new(pgx.Batch)
	if err := is.QueueDrafts(b, tasks); err != nil {
		return err
	}
	return postgres.Send(ctx, tx, b)
}
