package reconcile

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const nextSellers = `SELECT key FROM sellers WHERE key > $1 ORDER BY key LIMIT $2`

// The next number of a seller follows the last that it gave.
const selectSellers = `
	SELECT s.key, s.next_number, coalesce((SELECT max(i.number) FROM invoices i WHERE i.seller = s.key), 0) + 1
	FROM sellers s WHERE s.key = ANY ($1)`

// walkSellers checks that each seller's next number follows the last one.
func (r *Reconciler) walkSellers(ctx context.Context, found *findings) error {
	w := walk[string]{
		r: r, rows: "sellers",
		next: func(ctx context.Context, tx pgx.Tx, after string, n int) ([]string, error) {
			rows, _ := tx.Query(ctx, nextSellers, after, n)
			return pgx.CollectRows(rows, pgx.RowTo[string])
		},
		look: func(ctx context.Context, tx pgx.Tx, keys []string) (bad []wrong[string], err error) {
			var key string
			var next, expected int64
			rows, _ := tx.Query(ctx, selectSellers, keys)
			_, err = pgx.ForEachRow(rows, []any{&key, &next, &expected}, func() error {
				if next != expected {
					bad = append(bad, wrong[string]{key, NumbersHaveNoGap, Disagreement{Seller: key}.differs(expected, next,
						"The seller's next number does not follow the last number of its invoices.")})
				}
				return nil
			})
			return bad, err
		},
	}
	return w.run(ctx, "", found)
}
