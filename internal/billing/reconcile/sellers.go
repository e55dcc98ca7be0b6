package reconcile

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const nextSellers = `SELECT key FROM sellers WHERE key > $1 ORDER BY key LIMIT $2`

// The next number of a series follows the last that was given.
const selectSellers = `
	SELECT s.key, w.series, w.next, coalesce((SELECT max(i.number) FROM invoices i WHERE i.seller = s.key AND i.series = w.series), 0) + 1
	FROM sellers s, LATERAL (VALUES ('live', s.next_number), ('test', s.next_test_number)) AS w (series, next)
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
			var key, series string
			var next, expected int64
			rows, _ := tx.Query(ctx, selectSellers, keys)
			_, err = pgx.ForEachRow(rows, []any{&key, &series, &next, &expected}, func() error {
				if next != expected {
					bad = append(bad, wrong[string]{key, NumbersHaveNoGap, Disagreement{Seller: key}.differs(expected, next,
						"The seller's next number of the series "+series+" does not follow the last number of its invoices.")})
				}
				return nil
			})
			return bad, err
		},
	}
	return w.run(ctx, "", found)
}
