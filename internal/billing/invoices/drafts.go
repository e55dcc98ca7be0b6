package invoices

import (
	"errors"
	"quotad/internal/billing/accounts"
	"quotad/internal/postgres"

	"github.com/jackc/pgx/v5"
)

// correctionOf is how long a customer's drafts stay drafts: whoever is erased waits for nothing.
func (is *Invoices) correctionOf(c *accounts.Customer) int64 {
	if c.Erased {
		return 0
	}
	return is.correctionTime
}

const claimCharges = `
	UPDATE charges c SET invoice_id = w.invoice FROM unnest($1::bigint[], $2::uuid[]) AS w (customer, invoice)
	JOIN LATERAL (SELECT id FROM charges WHERE customer_id = w.customer AND invoice_id IS NULL OFFSET 0) u ON true
	WHERE c.customer_id = w.customer AND c.id = u.id`

// QueueDrafts adds new drafts to a batch, each with an id, made at its task's instant. They take the
// charges that are on them.
func (is *Invoices) QueueDrafts(b *pgx.Batch, drafts []*Task) error {
	var invoices []invoiceRow
	var lines []lineRow
	var counted []countedRow
	var customers []int64
	var ids []string
	for _, t := range drafts {
		i := &t.Result.Invoice
		i.ID, i.MadeAt, i.FinalizeAt = newID(t.c.Now), t.at, t.at+is.correctionOf(t.c)
		invoices, lines = append(invoices, rowOf(i, 0)), append(lines, lineRows(i)...)
		counted = append(counted, t.correctionRows()...)
		if len(t.in.Charges) > 0 {
			customers, ids = append(customers, t.c.ID), append(ids, i.ID)
		}
	}
	if err := errors.Join(postgres.QueueRows(b, insertInvoices, invoices), postgres.QueueRows(b, insertLines, lines), postgres.QueueRows(b, insertCounted, counted)); err != nil {
		return err
	}
	if len(customers) > 0 {
		b.Queue(claimCharges, customers, ids)
	}
	return nil
}
