package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const startOf = `
	SELECT a.starts_at FROM customers c JOIN billing_accounts a ON a.customer_id = c.id WHERE c.key = $1`

// CheckInstant refuses an instant of an adjustment that is before the customer's billing began:
// what was used then is never billed. Who is not billed has no such instant. The error is
// model.FieldErrors.
func (l *Ledger) CheckInstant(ctx context.Context, key string, at int64) error {
	start, err := oneRow(ctx, l.pool, nil, pgx.RowTo[int64], startOf, key)
	if err == nil && start > at {
		err = fault("at", "is before starts_at of the customer's billing: what was used before is never billed")
	}
	return err
}
