package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
)

// selectSettled reads the amounts of credits in payments of kind credits, and whether the invoice is in
// unpaid_invoices. Applied entries are negative.
const selectSettled = `
	SELECT w.id::text, p.n, p.applied, p.returned, EXISTS (SELECT FROM unpaid_invoices u WHERE u.invoice_id = w.id) FROM unnest($1::uuid[]) AS w (id)
	LEFT JOIN LATERAL (
		SELECT e.paid_n AS n, coalesce(-sum(e.amount_minor) FILTER (WHERE e.kind = 'applied'), 0)::bigint AS applied,
			coalesce(sum(e.amount_minor) FILTER (WHERE e.kind = 'returned' AND e.invoice_id IS NULL), 0)::bigint AS returned
		FROM credit_entries e WHERE e.paid_invoice = w.id AND e.paid_n IS NOT NULL GROUP BY e.paid_n) p ON true`

// ofCredits is the sum of a payment's credit entries.
type ofCredits struct{ applied, returned int64 }

// settled checks that the amount due of an invoice is the sum of its credit notes, its payments and its open
// amount.
func (p *page) settled(ctx context.Context) error {
	unpaid, entries := make(map[string]bool), make(map[string]map[int]ofCredits)
	var id string
	var n *int
	var applied, returned *int64
	var there bool
	rows, _ := p.tx.Query(ctx, selectSettled, p.ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &n, &applied, &returned, &there}, func() error {
		if unpaid[id] = there; n == nil {
			return nil
		}
		if entries[id] == nil {
			entries[id] = make(map[int]ofCredits)
		}
		entries[id][*n] = ofCredits{*applied, *returned}
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range p.invoices {
		if i.Kind != billing.KindCreditNote {
			p.due(i)
			p.byCredits(i, entries[i.ID])
			if final := i.Status == billing.StatusFinalized; final != unpaid[i.ID] {
				p.tell(DueIsSettled, i, Disagreement{}.says(fmt.Sprintf("The invoice is %s. Of those that are finalized there must be a row in unpaid_invoices, and of no others.",
					i.Status)))
			}
		}
	}
	return nil
}

// due checks that the status agrees with the open amount.
func (p *page) due(i *billing.Invoice) {
	rest := i.RestMinor()
	switch {
	case i.Status == billing.StatusVoid && i.PaidMinor() != 0:
		p.tell(DueIsSettled, i, Disagreement{}.differs(0, i.PaidMinor(), "The invoice is void, and payments of it stand."))
	case i.Status == billing.StatusVoid:
	case rest < 0:
		p.tell(DueIsSettled, i, Disagreement{}.differs(i.AmountDueMinor, i.AmountDueMinor-rest, "More was paid, and taken by credit notes, than was due."))
	case i.Status != i.StatusNow():
		p.tell(DueIsSettled, i, Disagreement{}.differs(0, rest, fmt.Sprintf("The invoice is %s, and by what is open it would be %s.", i.Status, i.StatusNow())))
	}
}

// byCredits checks that payments by credits equal the entries of the credits.
func (p *page) byCredits(i *billing.Invoice, entries map[int]ofCredits) {
	for n := range i.Payments {
		paid := &i.Payments[n]
		want := ofCredits{}
		if paid.Kind == billing.PaymentCredits {
			want.applied = paid.AmountMinor
			if paid.ReversedAt != nil {
				want.returned = paid.AmountMinor
			}
		}
		if found := entries[paid.N]; found != want {
			p.tell(DueIsSettled, i, Disagreement{}.differs(want.applied-want.returned, found.applied-found.returned,
				fmt.Sprintf("Payment %d is not what entries of credits applied and returned.", paid.N)))
		}
	}
}
