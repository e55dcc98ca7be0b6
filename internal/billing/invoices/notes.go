package invoices

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/events"
	"quotad/internal/postgres"
)

const notesOf = `SELECT` + invoiceColumns + `WHERE i.of = $1::uuid AND i.kind = 'credit_note' ORDER BY i.made_at, i.number`

const noteByRequest = `SELECT id::text, payload FROM invoices WHERE customer_id = $1 AND request = $2`

const setRequest = `UPDATE invoices SET request = $2, payload = $3 WHERE id = $1::uuid`

const insertNoteMoney = `
	INSERT INTO note_money (note_id, invoice_id, open_minor, carried_minor, outside_minor, returned_minor) VALUES ($1::uuid, $2::uuid, $3, $4, $5, $6)`

// CreditNote credits lines of an invoice, once for each id of the customer; ids are never reused. replayed
// reports whether the note existed before. Errors: billing.ErrUnknownInvoice, billing.ErrOtherPayload, and
// the errors of assembly.CreditNote.
func (is *Invoices) CreditNote(ctx context.Context, invoice string, request assembly.NoteRequest, id string, payload int64) (note *billing.Invoice,
	replayed bool, err error,
) {
	made, action := "", &act{word: "credit"}
	_, err = is.onInvoice(ctx, invoice, action, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer, i *billing.Invoice) error {
		var stored int64
		switch err := tx.QueryRow(ctx, noteByRequest, c.ID, id).Scan(&made, &stored); {
		case err == nil && stored != payload:
			return billing.ErrOtherPayload
		case err == nil:
			replayed, action.word = true, ""
			return nil
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		note, err := is.makeNote(ctx, tx, c, i, request, id, payload)
		if err == nil {
			made = note.ID
			action.note = &creditNote{note.ID, note.Number, note.TotalMinor, request.Reason, request.To}
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	note, err = is.Invoice(ctx, made)
	return note, replayed, err
}

// makeNote writes a credit note and its effects.
func (is *Invoices) makeNote(ctx context.Context, tx pgx.Tx, c *accounts.Customer, of *billing.Invoice, request assembly.NoteRequest, id string,
	payload int64,
) (*billing.Invoice, error) {
	found, err := invoicesOf(ctx, tx, notesOf, of.ID)
	if err != nil {
		return nil, err
	}
	earlier := make([]billing.Invoice, len(found))
	for i := range found {
		earlier[i] = *found[i]
	}
	lines, err := standingsOf(ctx, tx, of)
	if err != nil {
		return nil, err
	}
	applied, err := appliedTo(ctx, tx, of)
	if err != nil {
		return nil, err
	}
	made, err := assembly.CreditNote(of, earlier, lines, applied, request)
	if err != nil {
		return nil, err
	}
	note, money := &made.Invoice, &made.Money
	note.ID, note.MadeAt, note.FinalizeAt = newID(c.Now), c.Now, c.Now
	draft := rowOf(note, 0)
	draft.Status = billing.StatusDraft // the database accepts lines for drafts only
	b := new(pgx.Batch)
	if err := errors.Join(postgres.QueueRows(b, insertInvoices, []invoiceRow{draft}), postgres.QueueRows(b, insertLines, lineRows(note))); err != nil {
		return nil, err
	}
	b.Queue(setRequest, note.ID, id, payload)
	b.Queue(insertNoteMoney, note.ID, of.ID, money.OpenMinor, money.CarriedMinor, money.OutsideMinor, money.ReturnedMinor)
	if money.CarriedMinor > 0 {
		credit, entry := carried(note, money.CarriedMinor, c.Now)
		if err := errors.Join(postgres.QueueRows(b, insertCredits, []creditRow{credit}), postgres.QueueRows(b, bookEntries, []entryRow{entry}),
			events.Queue(b, creditEvent(events.CreditGranted, c, &credit, credit.AmountMinor, c.Now))); err != nil {
			return nil, err
		}
	}
	for _, back := range made.Returned { // in separate statements, because a credit may have paid twice
		if err := postgres.QueueRows(b, bookEntries, []entryRow{returnedEntry(c, of, back, note.ID)}); err != nil {
			return nil, err
		}
	}
	of.NotedMinor, of.CreditedMinor = of.NotedMinor+money.OpenMinor, of.CreditedMinor-note.TotalMinor
	b.Queue(setStatus, of.ID, of.StatusNow())
	if err := postgres.Send(ctx, tx, b); err != nil {
		return nil, err
	}
	// The note shows the seller as on the invoice, except for the prefix, which is the seller's present one.
	n, err := noteNumberOf(ctx, tx, note)
	if err != nil {
		return nil, err
	}
	row, err := n.give(note, c.Now)
	if err != nil {
		return nil, err
	}
	b = new(pgx.Batch)
	if err := postgres.QueueRows(b, updateInvoices, []invoiceRow{row}); err != nil {
		return nil, err
	}
	return note, postgres.Send(ctx, tx, b)
}
