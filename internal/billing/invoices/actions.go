package invoices

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

const customerOfInvoice = `SELECT customer_id FROM invoices WHERE id = $1::uuid`

// onInvoice runs do on a stored invoice, under the lock of the customer's billing, and returns the invoice
// after the change. action describes the operation for the audit trail. do may clear action.word if it
// changes nothing.
func (is *Invoices) onInvoice(ctx context.Context, id string, action *act,
	do func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error,
) (after *billing.Invoice, err error) {
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
		return action.record(ctx, tx, before, after, c.Now)
	})
	if err != nil {
		return nil, err
	}
	return after, nil
}

// act is an operation on an invoice.
type act struct {
	word    string        // the audit action; "" if nothing was done
	note    *creditNote   // the created note
	payment *paymentAudit // the created or reversed payment
}

// record writes the audit entry and the events of the operation. now is the instant of the operation, µs by
// the customer's clock.
func (a *act) record(ctx context.Context, tx pgx.Tx, before invoiceAudit, i *billing.Invoice, now int64) error {
	if a.word == "" {
		return nil
	}
	tell := told[a.word]
	if i.Status == billing.StatusPaid && before.Status != billing.StatusPaid {
		tell = append(slices.Clip(tell), events.InvoicePaid)
	}
	if a.payment != nil {
		if err := events.Write(ctx, tx, paymentEvent(a.word, i, a.payment, now)); err != nil {
			return err
		}
	}
	for _, what := range tell {
		e := invoiceEvent(what, i, now)
		if a.note != nil {
			e.Data.CreditNote = &client.EventNote{ID: a.note.ID, Number: a.note.Number, TotalMinor: a.note.TotalMinor}
		}
		if err := events.Write(ctx, tx, e); err != nil {
			return err
		}
	}
	after := auditInvoice(i)
	after.CreditNote, after.Payment = a.note, a.payment
	return store.Audit(ctx, tx, plans.Audited{Action: a.word, Target: "invoices/" + i.ID, Customer: i.Customer, Before: before, After: after})
}

// Finalize finalizes a draft now. Errors: billing.ErrUnknownInvoice, billing.StateError for an invoice that
// is not a draft, billing.ErrHeld.
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

const referredTo = `
	SELECT EXISTS (SELECT FROM invoice_lines l JOIN invoices i ON i.id = l.invoice_id WHERE l.of_invoice = $1::uuid AND i.status <> 'void')`

const voidInvoice = `UPDATE invoices SET status = 'void', void_reason = $2 WHERE id = $1::uuid`

// freeCharges releases the charges of a void invoice, so the next invoice contains them.
const freeCharges = `UPDATE charges SET invoice_id = NULL WHERE customer_id = $1 AND invoice_id = $2::uuid`

// Void makes an invoice void. The invoice must be finalized, or paid by credits alone. Its credits are
// returned and remain valid for at least billing.ReturnedFor.
//
// If reissue is true, Void creates a draft of the same period and prices. The charges, corrections and unused
// base of the void invoice go onto that draft, otherwise onto the next invoice. If billing is over, the next
// invoice is an extra one. If a draft gives back unused base of the void invoice, that line of the draft
// disappears.
//
// Errors: billing.ErrUnknownInvoice, billing.StateError, billing.ErrReferred, billing.ErrMoneyStands.
func (is *Invoices) Void(ctx context.Context, id, reason string, reissue bool) (*billing.Invoice, error) {
	return is.onInvoice(ctx, id, &act{word: "void"}, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		applied, err := appliedTo(ctx, tx, i)
		if err != nil {
			return err
		}
		if err := voidable(ctx, tx, i, applied); err != nil {
			return err
		}
		b := new(pgx.Batch)
		for n := range i.Payments {
			if p := &i.Payments[n]; p.ReversedAt == nil {
				b.Queue(reversePayment, id, p.N, c.Now, reason, nil, nil)
			}
		}
		if err := queueReturned(b, c, i, applied); err != nil {
			return err
		}
		b.Queue(voidInvoice, id, reason)
		b.Queue(freeCharges, c.ID, id)
		err = postgres.Send(ctx, tx, b)
		switch {
		case err != nil:
		case reissue:
			err = is.reissue(ctx, tx, c, i)
		case c.Open == nil && !i.Extra(): // the released items of a void extra invoice wait for a new item
			err = errors.Join(accounts.Owe(ctx, tx, c.ID, c.Now), c.RecallBuyer(ctx, tx, i))
		}
		if err == nil {
			err = leansOn(ctx, tx, i)
		}
		return err
	})
}

// voidable returns an error if an invoice cannot become void. applied lists the credits that pay the invoice.
func voidable(ctx context.Context, tx pgx.Tx, i *billing.Invoice, applied []assembly.Applied) error {
	var referred bool
	if err := tx.QueryRow(ctx, referredTo, i.ID).Scan(&referred); err != nil {
		return err
	}
	stands, err := readStandings(ctx, tx, []string{i.ID})
	switch {
	case err != nil:
		return err
	case i.Kind != billing.KindCreditNote && (referred || stands.anyUnused()) && i.Status != billing.StatusDraft && i.Status != billing.StatusVoid:
		return billing.ErrReferred
	case i.Status == billing.StatusFinalized, i.Status == billing.StatusPaid && i.Kind != billing.KindCreditNote && len(applied) > 0:
		if i.MoneyMinor() > 0 {
			return billing.ErrMoneyStands
		}
		return nil
	case i.MoneyMinor() > 0:
		return billing.ErrMoneyStands
	}
	return &billing.StateError{Status: i.Status, Want: "only invoices that are finalized, or that credits alone paid, can be void"}
}

// leansOn returns billing.ErrReferred if voiding an invoice would leave a line with more credit than amount.
// This can happen because corrections on the void invoice no longer count.
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

// reissue creates the draft that replaces a void invoice. A base price charged in advance keeps its amount,
// because the terms of the next period may have changed since.
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
