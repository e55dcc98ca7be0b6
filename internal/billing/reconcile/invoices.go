package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// nextInvoices lists final invoices. Drafts are skipped, because they are reassembled at each read. The order
// uses the column id, because an order by the text of the id would sort all invoices for each page.
const nextInvoices = `
	SELECT i.id::text FROM invoices i WHERE i.id > $1::uuid AND i.status <> 'draft' ORDER BY i.id LIMIT $2`

const noInvoice = "00000000-0000-0000-0000-000000000000"

// walkInvoices checks each final invoice: its lines against usage and prices, its totals, its number and its
// digest.
func (r *Reconciler) walkInvoices(ctx context.Context, found *findings) error {
	w := walk[string]{
		r: r, rows: "invoices", checks: []string{
			UsageIsBilled, LinesAreTotals, RatedIsBilled, NumbersHaveNoGap, DigestsMatch, AllIsClaimed, GivenBackOnce,
			DueIsSettled, PaidOutIsPaidIn,
		},
		next: func(ctx context.Context, tx pgx.Tx, after string, n int) ([]string, error) {
			rows, _ := tx.Query(ctx, nextInvoices, after, n)
			return pgx.CollectRows(rows, pgx.RowTo[string])
		},
		look: func(ctx context.Context, tx pgx.Tx, ids []string) ([]wrong[string], error) {
			p := page{tx: tx, stored: r.stored, ids: ids}
			return p.look(ctx)
		},
	}
	return w.run(ctx, noInvoice, found)
}

// page contains some invoices with their related data at one instant.
type page struct {
	tx       pgx.Tx
	stored   *invoices.Stored
	ids      []string
	invoices []*billing.Invoice
	terms    map[accounts.PeriodKey]assembly.Terms // terms of the invoices' own periods
	counted  []counted                             // usage lines and corrections
	bad      []wrong[string]
}

// look runs all checks of the page.
func (p *page) look(ctx context.Context) (bad []wrong[string], err error) {
	if p.invoices, err = p.stored.Invoices(ctx, p.tx, p.ids); err != nil {
		return nil, err
	}
	var keys []accounts.PeriodKey
	for _, i := range p.invoices {
		if i.Kind == billing.KindPeriod && !i.Extra() {
			keys = append(keys, periodOf(i))
		}
	}
	if p.terms, err = p.stored.Terms(ctx, p.tx, keys); err != nil {
		return nil, err
	}
	for _, check := range []func(context.Context) error{
		p.count, p.usage, p.copies, p.totals, p.rated, p.advance,
		p.corrections, p.numbers, p.digests, p.claimed, p.givenBack, p.settled, p.paidOut,
	} {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	return p.bad, nil
}

func periodOf(i *billing.Invoice) accounts.PeriodKey {
	return accounts.PeriodKey{Customer: i.Customer, Chain: i.Chain, N: i.N}
}

// tell records that a check failed for an invoice.
func (p *page) tell(check string, i *billing.Invoice, e Disagreement) {
	e.customer, e.Invoice, e.Number = i.Customer, i.ID, i.Number
	p.bad = append(p.bad, wrong[string]{i.ID, check, e})
}

// lineRef is a line of an invoice on the page.
type lineRef struct {
	i *billing.Invoice
	l *billing.Line
}

// lines returns the lines of the given kinds on all invoices except credit notes.
func (p *page) lines(kinds ...string) (all []lineRef) {
	for _, i := range p.invoices {
		for n := range i.Lines {
			for _, kind := range kinds {
				if i.Lines[n].Kind == kind && i.Kind != billing.KindCreditNote {
					all = append(all, lineRef{i, &i.Lines[n]})
				}
			}
		}
	}
	return all
}

// usage checks that quantities equal the usage and its adjustments. The last hour of an archived customer may
// still be in its counter.
func (p *page) usage(context.Context) error {
	for n := range p.counted {
		c := &p.counted[n]
		if c.held != nil {
			p.level(c)
		} else if sum := c.quantity(); sum != c.l.Quantity {
			p.tell(UsageIsBilled, c.i, Disagreement{Meter: c.l.Meter}.on(c.l.From).differs(sum, c.l.Quantity,
				fmt.Sprintf("Line %d, %s, has another quantity than its hours and adjustments add up to.", c.l.N, c.l.Kind)))
		}
	}
	return nil
}

// level checks that a line of a level meter bills the level held, by the price of its period.
func (p *page) level(c *counted) {
	terms, closed := p.terms[periodOf(c.i)]
	if !closed {
		return // rated reports it
	}
	line, _, err := terms.HeldLine(plans.Meter{Key: c.l.Meter}, *c.held)
	if err != nil && !errors.Is(err, rating.ErrTooLarge) || line.Level != c.l.Level {
		p.tell(UsageIsBilled, c.i, Disagreement{Meter: c.l.Meter}.on(c.l.From).differs(line.Quantity, c.l.Quantity,
			fmt.Sprintf("Line %d, %s, has the level %s, and the changes of what was held make it %s.", c.l.N, c.l.Kind, c.l.Level.Exact, line.Level.Exact)))
	}
}

// rated checks that the lines of periods equal the results of their prices.
func (p *page) rated(context.Context) error {
	for _, i := range p.invoices {
		if i.Kind != billing.KindPeriod {
			continue
		}
		if i.Extra() {
			p.extra(i)
			continue
		}
		terms, closed := p.terms[periodOf(i)]
		switch {
		case !closed:
			p.tell(RatedIsBilled, i, Disagreement{}.on(i.PeriodStart).says("The billing period of the invoice is not among the closed ones."))
			continue
		case terms.Plan.Version != i.PriceVersion || terms.Period.Start != i.PeriodStart || terms.Period.End != i.PeriodEnd:
			p.tell(RatedIsBilled, i, Disagreement{}.on(i.PeriodStart).says("The invoice is of other times, or of another plan version, than its billing period."))
		}
		for _, d := range terms.Rerate(i.Lines) {
			e := Disagreement{Meter: d.Meter}.on(i.PeriodStart)
			detail := d.Detail
			if d.Line > 0 {
				detail = fmt.Sprintf("Line %d: %s", d.Line, detail)
			}
			if d.Expected != d.Found {
				e = e.differs(d.Expected, d.Found, detail)
			}
			p.tell(RatedIsBilled, i, e.says(detail))
		}
	}
	return nil
}

// extra checks that an extra invoice bills nothing that belongs to a period.
func (p *page) extra(i *billing.Invoice) {
	if i.PeriodStart != i.PeriodEnd {
		p.tell(RatedIsBilled, i, Disagreement{}.on(i.PeriodStart).says("The invoice is of no billing period, and says that it is of some time."))
	}
	for n := range i.Lines {
		if l := &i.Lines[n]; l.Kind != billing.LineUnused && l.Kind != billing.LineCorrection && l.Kind != billing.LineCharge {
			p.tell(RatedIsBilled, i, Disagreement{Meter: l.Meter}.on(l.From).says(fmt.Sprintf("Line %d, %s: the invoice is of no billing period.", l.N, l.Kind)))
		}
	}
}

// selectGaps finds invoices whose preceding number is unassigned. An admin may have skipped to a number,
// which is no gap. walkSellers checks that the seller's next number follows the last one.
const selectGaps = `
	SELECT i.id::text, i.seller, i.series, i.number FROM invoices i
	WHERE i.id = ANY ($1::uuid[]) AND (i.number IS NULL OR i.number > 1
		AND NOT EXISTS (SELECT FROM invoices b WHERE b.seller = i.seller AND b.series = i.series AND b.prefix = i.prefix AND b.number = i.number - 1)
		AND NOT EXISTS (SELECT FROM seller_skips k WHERE k.seller = i.seller AND k.series = i.series AND k.prefix = i.prefix AND k.number = i.number))`

// numbers checks that no invoice lacks the number before its own.
func (p *page) numbers(ctx context.Context) error {
	byID := make(map[string]*billing.Invoice, len(p.invoices))
	for _, i := range p.invoices {
		byID[i.ID] = i
	}
	var id, series string
	var seller *string
	var number *int64
	rows, _ := p.tx.Query(ctx, selectGaps, p.ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &seller, &series, &number}, func() error {
		i := byID[id]
		if i == nil {
			return nil
		}
		if number == nil || seller == nil {
			p.tell(NumbersHaveNoGap, i, Disagreement{}.says("The invoice is final and has no number."))
			return nil
		}
		p.tell(NumbersHaveNoGap, i, Disagreement{Seller: *seller}.says(fmt.Sprintf("The seller's number before it in the series %s, %d, is missing.",
			series, *number-1)))
		return nil
	})
	return err
}

// digests checks that the contents of invoices have not changed since finalization.
func (p *page) digests(context.Context) error {
	for _, i := range p.invoices {
		digest, err := assembly.Digest(i)
		if err != nil {
			return err
		}
		if !bytes.Equal(digest, i.Digested) {
			p.tell(DigestsMatch, i, Disagreement{}.says("The invoice or one of its lines says something else than when it became final."))
		}
	}
	return nil
}
