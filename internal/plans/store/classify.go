package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/session"
)

// Classify converts the error of a failed statement to an error from which the caller can choose what to
// do. session.ErrUnavailable is an outage, and session.ErrNoSession means that the database does not
// serve this node. session.ErrBusy means that the server rolled back a statement that may succeed when it
// is retried. Other errors are returned unchanged.
func Classify(err error) error {
	switch {
	case err == nil, errors.Is(err, session.ErrUnavailable), errors.Is(err, session.ErrNoSession), errors.Is(err, session.ErrBusy):
		return err
	case postgres.Outage(err), postgres.Refused(err):
		return session.Unreached(err)
	case postgres.Archived(err):
		return fmt.Errorf("%w: %w", locked.ErrArchived, err)
	case postgres.Retryable(err):
		return fmt.Errorf("%w: %w", session.ErrBusy, err)
	}
	return err
}

// ClassifyCommit is Classify for the error of a COMMIT. It returns session.ErrOutcomeUnknown unless the
// error proves that nothing was stored.
func ClassifyCommit(err error) error {
	if err == nil || postgres.NotCommitted(err) {
		return Classify(err)
	}
	return fmt.Errorf("saving: %w: %w", session.ErrOutcomeUnknown, err)
}

// transact runs do in a transaction and commits the transaction unless do returns an error. Errors are
// classified by Classify, or by ClassifyCommit if the commit fails.
func transact(ctx context.Context, pool *pgxpool.Pool, do func(tx pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return Classify(err)
	}
	// A rollback after the commit does nothing. If ctx has ended, the pool closes the connection, which also
	// rolls back.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := do(tx); err != nil {
		return Classify(err)
	}
	return ClassifyCommit(tx.Commit(ctx))
}
