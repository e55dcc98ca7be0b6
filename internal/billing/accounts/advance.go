package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing/assembly"
	"quotad/internal/postgres"
)

// The invoice that holds the base in advance of a period is its opening, or the invoice of the
// period before it. OFFSET 0 keeps the order: the lines of one invoice are few, and those that
// begin at one instant are those of all customers.
const advanceLines = `
	SELECT w.n, l.from_at, l.to_at, l.plan_version, l.amount_minor, l.amount_minor + coalesce((
		SELECT sum(c.amount_minor) FROM invoice_lines c JOIN invoices ci ON ci.id = c.invoice_id AND ci.kind = 'credit_note'
		WHERE c.of_invoice = i.id AND c.of_line = l.n), 0)
	FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::bigint[]) WITH ORDINALITY AS w (customer, chain, period, start_at, n)
	JOIN LATERAL (
		SELECT id FROM invoices WHERE customer_id = w.customer AND chain = w.chain AND invoices.n = w.period AND kind = 'opening' AND status <> 'void'
		UNION ALL
		SELECT id FROM invoices WHERE customer_id = w.customer AND chain = w.chain AND invoices.n = w.period - 1 AND kind = 'period' AND status <> 'void'
		OFFSET 0
	) i ON true
	JOIN LATERAL (
		SELECT * FROM invoice_lines WHERE invoice_id = i.id AND kind = 'base' AND from_at = w.start_at OFFSET 0
	) l ON true
	ORDER BY w.n, i.id, l.n`

// paidAhead reports whether an invoice that is not void holds the base in advance of the open
// period. It is there only while the period is.
func paidAhead(ctx context.Context, q postgres.Querier, c *Customer) (paid bool, err error) {
	if c.Open == nil {
		return false, nil
	}
	err = q.QueryRow(ctx, `SELECT EXISTS (`+advanceLines+`)`, []int64{c.ID}, []int{c.Open.Chain}, []int{c.Open.N}, []int64{c.Open.Start}).Scan(&paid)
	return paid, err
}

// Holder is a period whose base in advance earlier invoices may hold.
type Holder struct {
	Customer int64
	Terms    *assembly.Terms
	// tell is called for each line. One that is not of the period's own terms was replaced by a cut at
	// the period's start.
	Found func(held assembly.Advance, replaced bool)
}

// QueueHeld finds the base lines of periods that earlier invoices hold.
func QueueHeld(b *pgx.Batch, of []Holder) {
	if len(of) == 0 {
		return
	}
	customers, starts := make([]int64, len(of)), make([]int64, len(of))
	chains, numbers := make([]int, len(of)), make([]int, len(of))
	for i, h := range of {
		p := &h.Terms.Period
		customers[i], starts[i], chains[i], numbers[i] = h.Customer, p.Start, p.Chain, p.N
	}
	var n int
	var a assembly.Advance
	var amount int64
	postgres.QueueEach(b, []any{&n, &a.From, &a.To, &a.PlanVersion, &amount, &a.LeftMinor}, func() error {
		h := of[n-1]
		h.Found(a, a.PlanVersion != h.Terms.Period.Version || amount != h.Terms.AdvanceBase(a.To))
		return nil
	}, advanceLines, customers, chains, numbers, starts)
}
