package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const nextSellers = `SELECT key FROM sellers WHERE key > $1 ORDER BY key LIMIT $2`

// selectSellers reads the next number of each series with its expected value: the number after the last
// assigned number, or the number to which an admin skipped.
const selectSellers = `
	SELECT s.key, w.series, w.prefix, w.next, greatest(
		coalesce((SELECT max(i.number) FROM invoices i WHERE i.seller = s.key AND i.series = w.series AND i.prefix = w.prefix), 0) + 1,
		(SELECT max(k.number) FROM seller_skips k WHERE k.seller = s.key AND k.series = w.series AND k.prefix = w.prefix))
	FROM sellers s, LATERAL (
		VALUES ('live', s.prefix, s.next_number), ('test', 'TEST-' || s.prefix, s.next_test_number)
		UNION ALL SELECT n.series, n.prefix, n.next_number FROM seller_numbers n WHERE n.seller = s.key) AS w (series, prefix, next)
	WHERE s.key = ANY ($1)`

// walkSellers checks that the next number of each series of each seller follows the last one.
func (r *Reconciler) walkSellers(ctx context.Context, found *findings) error {
	w := walk[string]{
		r: r, rows: "sellers",
		next: func(ctx context.Context, tx pgx.Tx, after string, n int) ([]string, error) {
			rows, _ := tx.Query(ctx, nextSellers, after, n)
			return pgx.CollectRows(rows, pgx.RowTo[string])
		},
		look: func(ctx context.Context, tx pgx.Tx, keys []string) (bad []wrong[string], err error) {
			var key, series, prefix string
			var next, expected int64
			rows, _ := tx.Query(ctx, selectSellers, keys)
			_, err = pgx.ForEachRow(rows, []any{&key, &series, &prefix, &next, &expected}, func() error {
				if next != expected {
					bad = append(bad, wrong[string]{key, NumbersHaveNoGap, Disagreement{Seller: key}.differs(expected, next,
						fmt.Sprintf("The seller's next number of the series %s with the prefix %q does not follow the last number of its invoices.", series, prefix))})
				}
				return nil
			})
			return bad, err
		},
	}
	return w.run(ctx, "", found)
}
