package reconcile

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
)

// selectPaidOut reads the amounts that an invoice's credit notes paid out or carried over to credits, and the
// amounts that credits of kind paid have paid. Applied entries are negative.
const selectPaidOut = `
	SELECT w.id::text,
		coalesce((SELECT sum(m.outside_minor + m.carried_minor) FROM note_money m WHERE m.invoice_id = w.id), 0)::bigint,
		coalesce((
			SELECT -sum(e.amount_minor) FROM (
				SELECT customer_id, credit_id, amount_minor FROM credit_entries WHERE invoice_id = w.id AND paid_invoice IS NULL AND kind = 'applied'
				UNION ALL
				SELECT customer_id, credit_id, amount_minor FROM credit_entries WHERE paid_invoice = w.id AND kind = 'applied'
			) e JOIN credits c ON c.customer_id = e.customer_id AND c.id = e.credit_id AND c.kind = 'paid'), 0)::bigint
	FROM unnest($1::uuid[]) AS w (id)`

// paidOut checks that the credit notes of an invoice paid out no more than was paid in by payments and paid
// credits. Reversed payments count, because a note may have paid them out before.
func (p *page) paidOut(ctx context.Context) error {
	of := make(map[string]*billing.Invoice, len(p.invoices))
	for _, i := range p.invoices {
		of[i.ID] = i
	}
	var id string
	var out, in int64
	rows, _ := p.tx.Query(ctx, selectPaidOut, p.ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &out, &in}, func() error {
		i := of[id]
		if i == nil {
			return nil
		}
		for n := range i.Payments {
			if paid := &i.Payments[n]; paid.Kind == billing.PaymentMoney {
				in += paid.AmountMinor
			}
		}
		if out > in {
			p.tell(PaidOutIsPaidIn, i, Disagreement{}.differs(in, out,
				"Credit notes paid out, or made credits of, more than payments and credits of kind paid have paid."))
		}
		return nil
	})
	return err
}
