package archive

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// reason is a reason why hours before a bound are still needed. Its statement returns the number of rows that
// need them, and the key of the first one. The parameter $1 is the bound, µs.
type reason struct{ sql, says string }

// Adjustments of customers whose billing has ended, and who are due no extra invoice, are never billed (see
// correctable in package invoices). The reasons therefore ignore them.
var reasons = []reason{
	{
		`SELECT count(*), min(c.key) FROM open_periods o JOIN customers c ON c.id = o.customer_id WHERE o.start_at < $1`,
		"%d billing periods that begin before it are not closed yet, for example that of customer %s. Take an earlier month, or wait until they are closed",
	},
	{
		`SELECT count(*), min(key) FROM test_clocks WHERE now < $1 + 86400000000`,
		"%d test clocks show an instant before it, or less than a day after it, for example %s. Set them forward first",
	},
	{
		`SELECT count(*), min(c.key) FROM invoices i JOIN customers c ON c.id = i.customer_id
		WHERE i.status = 'draft' AND (i.period_start < $1 OR EXISTS (
			SELECT FROM line_adjustments l WHERE l.invoice_id = i.id AND is_archived(l.customer, l.hour, $1)))`,
		"%d drafts bill or correct usage from before it, for example one of customer %s. Finalize them first",
	},
	{
		`SELECT count(*), min(c.key) FROM open_adjustments q JOIN open_periods o ON o.customer_id = q.customer JOIN customers c ON c.id = q.customer
		WHERE (o.start_at IS NOT NULL OR o.owed_at IS NOT NULL OR EXISTS (SELECT FROM owed_calls k WHERE k.customer_id = q.customer))
			AND is_archived(q.customer, q.hour, $1)`,
		"%d adjustments of usage from before it are on no invoice yet, for example one of customer %s. They come onto the customers' next invoices",
	},
}

// waitsFor returns a RefusedError if hours before a bound may still be billed or corrected.
func waitsFor(ctx context.Context, q querier, bound int64) error {
	for _, r := range reasons {
		if err := r.check(ctx, q, bound); err != nil {
			return err
		}
	}
	return nil
}

func (r reason) check(ctx context.Context, q querier, args ...any) error {
	var n int64
	var first *string
	rows, _ := q.Query(ctx, r.sql, args...)
	_, err := pgx.ForEachRow(rows, []any{&n, &first}, func() error { return nil })
	if err == nil && n > 0 {
		err = RefusedError(fmt.Sprintf(r.says, n, *first))
	}
	return err
}

// Customers without billing have periods, too, because their limits and reads use them. A running period can
// have begun no earlier than one interval before now. The parameters are $1 the bound and $2 now, both µs.
var unbilled = reason{
	`
	SELECT count(*), min(c.key) FROM customers c LEFT JOIN open_periods o ON o.customer_id = c.id LEFT JOIN test_clocks t ON t.id = c.test_clock_id
	JOIN plans p ON p.id = c.plan_id JOIN plan_versions v ON v.plan_id = p.id AND v.version = p.latest_version
	WHERE c.archived_at IS NULL AND o.start_at IS NULL
	  AND to_timestamp(coalesce(t.now, $2) / 1000000.0) AT TIME ZONE 'UTC' - ((v.document->>'interval_count') || ' ' || (v.document->>'interval'))::interval
	    < to_timestamp($1 / 1000000.0) AT TIME ZONE 'UTC'`,
	"the running periods of %d customers that are not billed may begin before it, for example that of customer %s. Take an earlier month",
}

// runsFor returns a RefusedError if the running period of a customer without billing may have begun before a
// bound.
func runsFor(ctx context.Context, q querier, now, bound int64) error {
	return unbilled.check(ctx, q, bound, now)
}
