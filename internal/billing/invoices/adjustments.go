package invoices

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/quota/usage"
)

// The queue open_adjustments contains the keys of adjustments that are on no invoice. It identifies the
// closed lines that may need a correction. The billed amount is computed from the engine's usage less the
// invoiced adjustments, so a surplus row has no effect on a bill.
//
// An invoice that claims an adjustment deletes the row, and an invoice that releases the adjustment restores
// the row. Triggers do both, see migrations/00008_invoices.sql.

// OpenAdjustments adds new adjustments to the queue. The engine runs the statement in the transaction that
// creates the adjustments, see quota.Options.AlsoAdjusted. If the customer's billing is over or has a set
// end, the statement also adds a call for an extra invoice, see accounts/owed.go.
const OpenAdjustments = `
	WITH i AS (
		SELECT customer, hour, meter, key, at
		FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[], $8::text[])
			AS i (shard, customer, meter, hour, key, cost, at, reason)
	), queued AS (
		INSERT INTO open_adjustments (customer, hour, meter, key) SELECT customer, hour, meter, key FROM i ON CONFLICT DO NOTHING
	)
	INSERT INTO owed_calls (customer_id, hour, meter, at)
	SELECT customer, hour, meter, min(at) FROM i
	WHERE EXISTS (SELECT FROM billing_accounts WHERE customer_id = i.customer AND ends_at > i.hour OFFSET 0)
	GROUP BY customer, hour, meter`

// dropDead deletes queue rows that no invoice will ever claim, for hours before a period. Such an hour is in
// no closed period, or its period has no valid invoice with a line of the meter. Closed periods and their
// prices never change, so these rows are never needed later. It also deletes rows that an invoice has already
// claimed, because a restore of data alone may leave such rows.
const dropDead = `
	DELETE FROM open_adjustments q USING unnest($1::bigint[], $2::bigint[]) AS w (customer, before)
	WHERE q.customer = w.customer AND q.hour < w.before AND (NOT EXISTS (
		SELECT FROM (
			SELECT chain, n, end_at FROM periods WHERE customer_id = q.customer AND start_at <= q.hour ORDER BY start_at DESC LIMIT 1) p
		JOIN LATERAL (
			SELECT id FROM invoices WHERE customer_id = q.customer AND chain = p.chain AND n = p.n AND kind = 'period' AND status <> 'void' OFFSET 0) i ON true
		JOIN invoice_lines l ON l.invoice_id = i.id AND l.kind = 'usage'
		JOIN meters m ON m.key = l.meter AND m.id = q.meter
		WHERE p.end_at > q.hour OFFSET 0)
	OR EXISTS (
		SELECT FROM line_adjustments t JOIN invoices k ON k.id = t.invoice_id AND k.status <> 'void'
		WHERE t.customer = q.customer AND t.meter = q.meter AND t.hour = q.hour AND t.key = q.key OFFSET 0))`

// QueueDropDead queues the deletion of dead rows for customers whose periods were just closed. It skips first
// periods, because their start may still move back. An extra invoice is included if a period was ever closed.
func QueueDropDead(b *pgx.Batch, closed []*Task) {
	var customers, before []int64
	for _, t := range closed {
		if t.Period.Chain+t.Period.N > 0 || t.Period.Extra() && t.Period.FullEnd > 0 {
			customers, before = append(customers, t.c.ID), append(before, t.Period.Start)
		}
	}
	if len(customers) > 0 {
		b.Queue(dropDead, customers, before)
	}
}

const claimedAdjustments = `
	SELECT w.n, l.hour, l.key
	FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (customer, meter, start_at, end_at, n)
	JOIN line_adjustments l ON l.customer = w.customer AND l.meter = w.meter AND l.hour >= w.start_at AND l.hour < w.end_at
	JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'`

// claimed returns, for each span, the adjustments that are already on an invoice.
func claimed(ctx context.Context, q postgres.Querier, spans []usage.Span) ([][]usage.Key, error) {
	customers, starts, ends := make([]int64, len(spans)), make([]int64, len(spans)), make([]int64, len(spans))
	meters := make([]int32, len(spans))
	for i, s := range spans {
		customers[i], meters[i], starts[i], ends[i] = s.Customer, s.Meter, s.Start, s.End
	}
	all := make([][]usage.Key, len(spans))
	var n int
	var a usage.Key
	err := postgres.ForEach(ctx, q, []any{&n, &a.Hour, &a.ID}, func() error {
		all[n-1] = append(all[n-1], a)
		return nil
	}, claimedAdjustments, customers, meters, starts, ends)
	return all, err
}

// without returns the adjustments in all, except those in others.
func without(all []usage.Adjustment, others []usage.Key) []usage.Adjustment {
	gone := make(map[usage.Key]bool, len(others))
	for _, a := range others {
		gone[a] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(a usage.Adjustment) bool { return gone[a.Key] })
}
