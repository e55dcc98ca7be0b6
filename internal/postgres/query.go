package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
)

// Querier is the pool or a running transaction.
type Querier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// ForEach scans each row into the same variables and calls do after each row.
func ForEach(ctx context.Context, q Querier, into []any, do func() error, statement string, args ...any) error {
	rows, _ := q.Query(ctx, statement, args...) // ForEachRow returns the error of a failed Query
	_, err := pgx.ForEachRow(rows, into, do)
	return err
}

// QueueEach queues a statement in a batch, and scans its rows as ForEach does. All statements of a batch need
// one round trip.
func QueueEach(b *pgx.Batch, into []any, do func() error, statement string, args ...any) {
	b.Queue(statement, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, do)
		return err
	})
}

// Send sends a batch and passes the result of each statement to the function that was queued with it.
func Send(ctx context.Context, q Querier, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return q.SendBatch(ctx, b).Close()
}

// QueueRows adds a statement to a batch, if there are any rows. The statement's parameter contains all rows of a
// table.
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
