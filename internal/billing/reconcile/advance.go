package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
)

// ahead is a line that charges a base price in advance, with the period of that base price.
type ahead struct {
	lineRef
	of accounts.PeriodKey
}

// aheads returns the lines of base in advance on the page's invoices. On an opening invoice, the base is for
// its own period; on any other invoice, it is for the next period. Void invoices are skipped, because their
// base was written off.
func (p *page) aheads() (all []ahead) {
	for _, r := range p.lines(billing.LineBase) {
		of := periodOf(r.i)
		own := p.terms[of]
		switch {
		case r.i.Status == billing.StatusVoid:
			continue
		case r.i.Kind == billing.KindOpening:
		case r.l.From >= r.i.PeriodEnd && !own.Period.BaseGoesOn():
			of.N++
		default:
			continue // a base of its own period, see assembly.Terms.Rerate
		}
		all = append(all, ahead{r, of})
	}
	return all
}

// advance checks that a base in advance equals the result of its period's terms. The period is either closed
// by now or open. If a change at the period's start has replaced the terms, the check does not apply, because
// the period's own invoice gives the base back.
func (p *page) advance(ctx context.Context) error {
	all := p.aheads()
	if len(all) == 0 {
		return nil
	}
	keys, customers := make([]accounts.PeriodKey, len(all)), make([]int64, len(all))
	for n, a := range all {
		keys[n], customers[n] = a.of, a.of.Customer
	}
	terms, err := p.stored.Terms(ctx, p.tx, keys)
	if err != nil {
		return err
	}
	open, err := p.stored.OpenTerms(ctx, p.tx, customers)
	if err != nil {
		return err
	}
	var other []ahead // lines that differ from the result of their terms
	for _, a := range all {
		t, there := terms[a.of]
		if !there {
			t, there = open[a.of]
		}
		if !there || t.Period.Start != a.l.From {
			p.tell(RatedIsBilled, a.i, Disagreement{}.on(a.l.From).says(fmt.Sprintf("Line %d: there is no billing period that begins with this base price in advance.",
				a.l.N)))
			continue
		}
		if t.Period.BaseOf().Version != a.l.PlanVersion || t.AdvanceBase(a.l.To) != a.l.AmountMinor {
			other, terms[a.of] = append(other, a), t
		}
	}
	replaced, err := p.replaced(ctx, other)
	for n, a := range other {
		if t := terms[a.of]; !replaced[n] {
			p.tell(RatedIsBilled, a.i, Disagreement{}.on(a.l.From).differs(t.AdvanceBase(a.l.To), a.l.AmountMinor,
				fmt.Sprintf("Line %d: the base price in advance of this time is another amount.", a.l.N)))
		}
	}
	return err
}

// selectReplaced finds terms that apply from a period's start and were written at that start or later.
const selectReplaced = `
	SELECT w.n FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS w (customer, start_at, n)
	WHERE EXISTS (SELECT FROM customer_terms t WHERE t.customer_id = w.customer AND t.from_at = w.start_at AND t.limits_at >= w.start_at
		AND t.how NOT IN ('period_end', 'base_end'))`

// replaced returns the indexes of base lines whose terms may have been replaced.
func (p *page) replaced(ctx context.Context, of []ahead) (map[int]bool, error) {
	all := make(map[int]bool, len(of))
	if len(of) == 0 {
		return all, nil
	}
	customers, starts := make([]int64, len(of)), make([]int64, len(of))
	for n, a := range of {
		customers[n], starts[n] = a.i.Customer, a.l.From
	}
	var n int
	rows, _ := p.tx.Query(ctx, selectReplaced, customers, starts)
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
		all[n-1] = true
		return nil
	})
	return all, err
}
