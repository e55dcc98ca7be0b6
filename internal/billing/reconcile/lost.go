package reconcile

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/usage"
)

// pricedMeters joins the meters that have a price in the period p of the plan version v.
const pricedMeters = `
	LATERAL (SELECT x->>'meter' AS key FROM jsonb_array_elements(v.document->'prices') x UNION SELECT jsonb_object_keys(p.prices)) priced
	JOIN meters m ON m.key = priced.key`

// selectUnlisted finds meters that have a price in a closed period but no line on its invoice. A period with
// a void invoice is written off. withoutInvoice reports a period without any invoice.
const selectUnlisted = `
	SELECT p.customer_id, m.id, p.start_at, p.end_at
	FROM periods p JOIN plan_versions v ON v.plan_id = p.plan_id AND v.version = p.version
	JOIN invoices i ON i.customer_id = p.customer_id AND i.period_end = p.end_at AND i.chain = p.chain AND i.n = p.n
		AND i.kind = 'period' AND i.status NOT IN ('draft', 'void'),` + pricedMeters + `
	WHERE p.customer_id = ANY ($1)
	  AND NOT EXISTS (SELECT FROM invoice_lines l WHERE l.invoice_id = i.id AND l.kind = 'usage' AND l.meter = m.key)`

// selectArchived reads customers whose billing ended by archiving: the priced meters of their last period,
// and the end of that period.
const selectArchived = `
	SELECT p.customer_id, m.id, p.end_at, 9223372036854775807::bigint
	FROM billing_accounts a JOIN periods p ON p.customer_id = a.customer_id AND p.end_at = a.archived_end
	JOIN plan_versions v ON v.plan_id = p.plan_id AND v.version = p.version,` + pricedMeters + `
	WHERE a.customer_id = ANY ($1) AND a.archived_end IS NOT NULL`

// lost finds units of priced meters that no invoice will ever contain. The check usage_is_billed compares the
// units of lines with their hours.
//
// After an end written by PUT …/billing, units may be booked that are free. After archiving no new usage is
// possible, so units booked there were used before.
func lost(ctx context.Context, tx pgx.Tx, ids []int64) (bad []wrong[int64], err error) {
	for _, statement := range []string{selectUnlisted, selectArchived} {
		rows, _ := tx.Query(ctx, statement, ids)
		spans, err := pgx.CollectRows(rows, pgx.RowToStructByPos[usage.Span])
		if err != nil {
			return nil, err
		}
		if len(spans) == 0 {
			continue
		}
		sums, err := usage.Sums(ctx, tx, spans)
		if err != nil {
			return nil, err
		}
		for n := range sums {
			if detail := lostOf(&sums[n], spans[n].End == math.MaxInt64); detail != "" {
				e := Disagreement{customer: spans[n].Customer, meter: spans[n].Meter}.on(spans[n].Start)
				bad = append(bad, wrong[int64]{spans[n].Customer, UnitsAreBilled, e.says(detail)})
			}
		}
	}
	return bad, nil
}

// lostOf describes the lost units of a span, or returns "" if none are lost. If archived is true, the span
// begins at the end of an archived customer's billing. Adjustments of later hours are never billed.
func lostOf(s *usage.Sum, archived bool) string {
	used := s.Before(s.Adjustments)
	switch {
	case archived && used != 0:
		return fmt.Sprintf("%d units were booked at the end of the archived customer's billing, or later. No invoice will have them.", used)
	case !archived && (used != 0 || len(s.Adjustments) > 0):
		return fmt.Sprintf("The meter has a price in the billing period that begins here, and no line on its invoice. %d units were booked, and %d adjustments made.",
			used, len(s.Adjustments))
	}
	return ""
}
