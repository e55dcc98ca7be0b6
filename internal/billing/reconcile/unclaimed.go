package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
	"quotad/internal/quota/usage"
)

// selectLater reads, for each line, the end of the last period whose invoice should contain the line's
// adjustments. Such an invoice is later, has a line of the meter, and was created after this invoice was
// final.
const selectLater = `
	SELECT w.n, max(k.period_end)
	FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (customer, meter, end_at, final_at, n)
	JOIN invoices k ON k.customer_id = w.customer AND k.period_start >= w.end_at AND k.kind = 'period' AND k.status <> 'void' AND k.made_at >= w.final_at
	JOIN invoice_lines l ON l.invoice_id = k.id AND l.kind = 'usage' AND l.meter = w.meter
	GROUP BY w.n`

// unclaimed is a final usage line with adjustments that are on no invoice, in the order of their instants.
// Adjustments before the instant missed were readable for a later invoice, because the fence at the end of
// its period came after them.
//
// Adjustments of an invoice that became void are excluded. They wait for the next invoice, but it is unknown
// since when.
type unclaimed struct {
	*counted
	left   []usage.Adjustment
	missed int64
}

// claimed checks that adjustments of billed periods are on an invoice or wait for one.
func (p *page) claimed(ctx context.Context) error {
	var all []unclaimed
	var customers, ends, finals []int64
	var meters []string
	for n := range p.counted {
		c := &p.counted[n]
		if c.l.Kind != billing.LineUsage || c.i.Status == billing.StatusVoid || c.i.FinalizedAt == nil {
			continue
		}
		p.waits(c)
		if _, left := c.takenBy(func(*taken) bool { return true }); len(left) > 0 {
			slices.SortFunc(left, func(a, b usage.Adjustment) int {
				return cmp.Or(cmp.Compare(a.At, b.At), bytes.Compare(a.ID[:], b.ID[:]))
			})
			all = append(all, unclaimed{counted: c, left: left})
			customers, meters, ends, finals = append(customers, c.i.Customer), append(meters, c.l.Meter), append(ends, c.l.To), append(finals, *c.i.FinalizedAt)
		}
	}
	if len(all) == 0 {
		return nil
	}
	var n int
	var end int64
	rows, _ := p.tx.Query(ctx, selectLater, customers, meters, ends, finals)
	_, err := pgx.ForEachRow(rows, []any{&n, &end}, func() error {
		all[n-1].missed = end
		return nil
	})
	for n := range all {
		p.claim(&all[n])
	}
	return err
}

// claim reports adjustments of a line that an invoice should contain. The invoice has read the missed
// adjustments and perhaps some of the others. It was right to omit them if their sum is too large for an
// invoice.
func (p *page) claim(u *unclaimed) {
	last := -1
	for n := range u.left {
		if u.left[n].At < u.missed {
			last = n
		}
	}
	terms, closed := p.terms[periodOf(u.i)]
	if last < 0 || !closed {
		return
	}
	corrected, _ := u.takenBy(func(t *taken) bool { return !t.void && t.invoice != u.i.ID })
	counted := u.l.Quantity + costs(corrected)
	sum := int64(0)
	for n, a := range u.left {
		sum += a.Cost
		if n < last {
			continue
		}
		_, _, err := assembly.CorrectionLine(assembly.Correction{Meter: u.l.Meter, Of: terms, Counted: counted, Now: counted + sum}, plans.Meter{})
		if err != nil {
			return
		}
	}
	p.tell(AllIsClaimed, u.i, Disagreement{Meter: u.l.Meter}.on(u.left[0].Hour).says(fmt.Sprintf(
		"An adjustment of %d units in this hour is on no invoice, though a later one should have taken it. In all there are %d such ones of line %d.",
		u.left[0].Cost, last+1, u.l.N)))
}
