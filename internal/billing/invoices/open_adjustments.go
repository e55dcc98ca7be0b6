package invoices

import "github.com/jackc/pgx/v5"

// The queue open_adjustments has the keys of adjustments that no invoice has taken. It says where
// closed lines may have to be corrected. What is billed is what the engine has, less what invoices
// took, so a row too many bills nothing. Taking an adjustment deletes its row, and giving it up puts
// the row back: triggers do that, see migrations/00019_open_adjustments.sql.

// OpenAdjustments adds new adjustments to the queue. The engine sends it in the transaction that makes
// them, see quota.Options.AlsoAdjusted.
const OpenAdjustments = `
	INSERT INTO open_adjustments (customer, hour, meter, key)
	SELECT customer, hour, meter, key
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[], $8::text[])
		AS i (shard, customer, meter, hour, key, cost, at, reason)
	ON CONFLICT DO NOTHING`

// dropDead deletes what no invoice will ever take, of hours before a period. The hour is in no closed
// period, or its period has no invoice with a line of the meter, but for void ones. Closed periods and
// their prices stay as they are, so such a row never comes to be wanted. What an invoice has taken
// already is deleted, too: a restore of data alone may leave such rows.
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

// QueueDropDead has what is dead deleted of customers whose periods were just closed. Before a first
// period has closed, its start may still be set back.
func QueueDropDead(b *pgx.Batch, closed []*Task) {
	var customers, before []int64
	for _, t := range closed {
		if t.Period.Chain+t.Period.N > 0 {
			customers, before = append(customers, t.c.ID), append(before, t.Period.Start)
		}
	}
	if len(customers) > 0 {
		b.Queue(dropDead, customers, before)
	}
}
