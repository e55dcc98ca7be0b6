package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
)

// selectCorrected reads the corrected line of each correction, and the units that other invoices corrected.
// For some of these units it is unknown whether they counted when the correction was created: units on void
// invoices, units corrected at the same instant, and units on reissues.
const selectCorrected = `
	SELECT w.n, i.chain, i.n, l.quantity, o.units, o.void OR o.reissue OR o.made_at = s.made_at OR s."of" IS NOT NULL, o.made_at < s.made_at
	FROM unnest($1::uuid[], $2::uuid[], $3::text[]) WITH ORDINALITY AS w (invoice, corrected, meter, n)
	JOIN invoices s ON s.id = w.invoice
	JOIN invoices i ON i.id = w.corrected
	JOIN invoice_lines l ON l.invoice_id = i.id AND l.kind = 'usage' AND l.meter = w.meter
	JOIN meters m ON m.key = w.meter
	LEFT JOIN LATERAL (
		SELECT sum(c.cost)::bigint AS units, k.made_at, k.status = 'void' AS void, k."of" IS NOT NULL AS reissue
		FROM line_adjustments c JOIN invoices k ON k.id = c.invoice_id
		WHERE c.customer = i.customer_id AND c.meter = m.id AND c.hour >= l.from_at AND c.hour < l.to_at
		  AND k.id <> w.invoice AND NOT (k.kind = 'period' AND k.chain = i.chain AND k.n = i.n)
		GROUP BY k.id) o ON true
	ORDER BY w.n`

// maxUncertain is the maximum number of earlier corrections for which it is unknown whether they counted.
// With more, the starting quantity of a correction cannot be determined.
const maxUncertain = 8

// corrected contains the possible starting quantities of a correction.
type corrected struct {
	period    accounts.PeriodKey
	quantity  int64 // of the line and all earlier corrections
	uncertain []int64
}

// corrections checks that a correction is R(q+Δ) − R(q) by the prices of the corrected period, and that q is
// the quantity billed before. A correction gives back less if credit notes had credited a part already.
func (p *page) corrections(ctx context.Context) error {
	lines := p.lines(billing.LineCorrection)
	if len(lines) == 0 {
		return nil
	}
	of, err := p.correctedBy(ctx, lines)
	if err != nil {
		return err
	}
	keys := make([]accounts.PeriodKey, 0, len(of))
	for _, c := range of {
		keys = append(keys, c.period)
	}
	terms, err := p.stored.Terms(ctx, p.tx, keys)
	if err != nil {
		return err
	}
	var other []recorrected // lines that differ from R(q+Δ) − R(q)
	for n, r := range lines {
		e := Disagreement{Meter: r.l.Meter}.on(r.l.From)
		c, known := of[n]
		t, closed := terms[c.period]
		if !known || !closed {
			p.tell(RatedIsBilled, r.i, e.says(fmt.Sprintf("Line %d corrects a line or a billing period that is not there.", r.l.N)))
			continue
		}
		before, _, unrated := t.UsageLine(plans.Meter{Key: r.l.Meter}, r.l.Before.Quantity)
		again := recorrected{r, t, 0}
		line, err := again.from(before.AmountMinor, 0)
		if again.amount = line.AmountMinor; unrated != nil || err != nil || again.amount != r.l.AmountMinor {
			other = append(other, again)
		}
		if line, err = again.from(r.l.Before.AmountMinor, r.l.Before.CreditedMinor); err != nil || line.AmountMinor != r.l.AmountMinor || !line.PricedAs(r.l) {
			p.tell(RatedIsBilled, r.i, e.says(fmt.Sprintf("Line %d is not what it says by the prices of the corrected period.", r.l.N)))
		}
		if !c.startsAt(r.l.Before.Quantity) {
			p.tell(RatedIsBilled, r.i, e.differs(c.quantity, r.l.Before.Quantity,
				fmt.Sprintf("Line %d starts from another quantity than was billed before.", r.l.N)))
		}
	}
	return p.noted(ctx, other)
}

// correctedBy returns the starting quantities of each correction, by its index.
func (p *page) correctedBy(ctx context.Context, lines []lineRef) (map[int]corrected, error) {
	var ids, of, meters []string
	for _, r := range lines {
		ids, of, meters = append(ids, r.i.ID), append(of, r.l.OfInvoice), append(meters, r.l.Meter)
	}
	all := make(map[int]corrected, len(lines))
	var n, chain, number int
	var quantity int64
	var other *int64
	var uncertain, before *bool
	rows, _ := p.tx.Query(ctx, selectCorrected, ids, of, meters)
	_, err := pgx.ForEachRow(rows, []any{&n, &chain, &number, &quantity, &other, &uncertain, &before}, func() error {
		c, there := all[n-1]
		if !there {
			c = corrected{accounts.PeriodKey{Customer: lines[n-1].i.Customer, Chain: chain, N: number}, quantity, nil}
		}
		switch {
		case other == nil:
		case *uncertain:
			c.uncertain = append(c.uncertain, *other)
		case *before:
			c.quantity += *other
		}
		all[n-1] = c
		return nil
	})
	return all, err
}

// startsAt reports whether a quantity is a possible quantity before a correction.
func (c *corrected) startsAt(before int64) bool {
	return len(c.uncertain) > maxUncertain || slices.Contains(sumsWith(c.quantity, c.uncertain), before)
}

// sumsWith returns sum plus each possible subset of others.
func sumsWith(sum int64, others []int64) []int64 {
	all := []int64{sum}
	for _, other := range others {
		for _, one := range all {
			all = append(all, one+other)
		}
	}
	return all
}
