package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
)

// recorrected is a correction that is computed again.
type recorrected struct {
	lineRef
	terms  assembly.Terms // terms of the corrected period
	amount int64
}

// from returns the correction line computed from the amount billed before and the amount on credit notes.
func (c *recorrected) from(billed, noted int64) (billing.Line, error) {
	line, _, err := assembly.CorrectionLine(assembly.Correction{
		Meter: c.l.Meter, Of: c.terms, OfInvoice: c.l.OfInvoice, Counted: c.l.Before.Quantity, Now: c.l.Before.Quantity + c.l.Quantity,
		BilledMinor: billed, NotedMinor: noted,
	}, plans.Meter{})
	return line, err
}

// selectNoted reads the amounts of a corrected line and of its other corrections, and the credit notes on
// them in their order. certain means that an amount counted when the correction was created. As with
// quantities, this is unknown for some amounts.
const selectNoted = `
	SELECT w.n, false AS note, l.amount_minor, true AS certain, 0 AS at
	FROM unnest($1::uuid[], $2::uuid[], $3::text[]) WITH ORDINALITY AS w (invoice, corrected, meter, n)
	JOIN invoice_lines l ON l.invoice_id = w.corrected AND l.kind = 'usage' AND l.meter = w.meter
	UNION ALL
	SELECT w.n, false, x.amount_minor, k.status <> 'void' AND k."of" IS NULL AND s."of" IS NULL AND k.made_at < s.made_at, k.made_at
	FROM unnest($1::uuid[], $2::uuid[], $3::text[]) WITH ORDINALITY AS w (invoice, corrected, meter, n)
	JOIN invoices s ON s.id = w.invoice
	JOIN invoice_lines x ON x.of_invoice = w.corrected AND x.kind = 'correction' AND x.meter = w.meter AND x.of_line IS NULL
	JOIN invoices k ON k.id = x.invoice_id AND k.id <> w.invoice AND (k.made_at <= s.made_at OR k.status = 'void' OR k."of" IS NOT NULL OR s."of" IS NOT NULL)
	UNION ALL
	SELECT w.n, true, -y.amount_minor, true, k.made_at
	FROM unnest($1::uuid[], $2::uuid[], $3::text[]) WITH ORDINALITY AS w (invoice, corrected, meter, n)
	JOIN invoice_lines x ON x.meter = w.meter
		AND (x.invoice_id = w.corrected AND x.kind = 'usage' OR x.of_invoice = w.corrected AND x.kind = 'correction' AND x.of_line IS NULL)
	JOIN invoice_lines y ON y.of_invoice = x.invoice_id AND y.of_line = x.n
	JOIN invoices k ON k.id = y.invoice_id
	ORDER BY 1, 5, 3`

// noted checks corrections of lines that credit notes had credited in part. The amount must be max(R(q+Δ),
// notes) less the amount billed before.
func (p *page) noted(ctx context.Context, of []recorrected) error {
	if len(of) == 0 {
		return nil
	}
	var ids, corrected, meters []string
	for _, c := range of {
		ids, corrected, meters = append(ids, c.i.ID), append(corrected, c.l.OfInvoice), append(meters, c.l.Meter)
	}
	billed, perhaps, notes := make([]int64, len(of)), make([][]int64, len(of)), make([][]int64, len(of))
	var n int
	var note, certain bool
	var amount, at int64
	rows, _ := p.tx.Query(ctx, selectNoted, ids, corrected, meters)
	_, err := pgx.ForEachRow(rows, []any{&n, &note, &amount, &certain, &at}, func() error {
		switch n--; {
		case note:
			notes[n] = append(notes[n], amount)
		case certain:
			billed[n] += amount
		default:
			perhaps[n] = append(perhaps[n], amount)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for n := range of {
		if c := &of[n]; len(perhaps[n]) <= maxUncertain && !c.mayBe(sumsWith(billed[n], perhaps[n]), notes[n]) {
			p.tell(RatedIsBilled, c.i, Disagreement{Meter: c.l.Meter}.on(c.l.From).differs(c.amount, c.l.AmountMinor,
				fmt.Sprintf("Line %d: %d units more or less cost another amount by the prices of the corrected period.", c.l.N, c.l.Quantity)))
		}
	}
	return nil
}

// mayBe reports whether one of the billed amounts explains the correction, together with the first of the
// notes up to any point.
func (c *recorrected) mayBe(billed, notes []int64) bool {
	noted := int64(0)
	for n := range len(notes) + 1 {
		if n > 0 {
			noted += notes[n-1]
		}
		if slices.ContainsFunc(billed, func(before int64) bool {
			again, err := c.from(before, noted)
			return err == nil && again.AmountMinor == c.l.AmountMinor
		}) {
			return true
		}
	}
	return false
}
