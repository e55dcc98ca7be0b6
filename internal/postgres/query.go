package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
)

// Querier is the pool, or a transaction under way.
type Querier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// ForEach reads rows, each into the same places, and calls do after each.
func ForEach(ctx context.Context, q Querier, into []any, do func() error, statement string, args ...any) error {
	rows, _ := q.Query(ctx, statement, args...) // a failed Query is the error of ForEachRow
	_, err := pgx.ForEachRow(rows, into, do)
	return err
}

// QueueEach is ForEach as a statement of a batch. The statements of a batch take one round trip.
func QueueEach(b *pgx.Batch, into []any, do func() error, statement string, args ...any) {
	b.Queue(statement, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, do)
		return err
	})
}

// Send sends a batch, and gives what its statements return to who queued them.
func Send(ctx context.Context, q Querier, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return q.SendBatch(ctx, b).Close()
}

// QueueRows adds a statement to a batch whose parameter is all rows of a table, if there are any.
func QueueRows[T any](b *pgx.Batch, statement string, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	all, err := json.Marshal(rows)
	if err == nil {
		b.Queue(statement, string(all))
	}
	return err
}
