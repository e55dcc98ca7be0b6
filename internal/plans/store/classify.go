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

// Classify turns a failed statement's error into one that says what the caller may do.
// session.ErrUnavailable is an outage. session.ErrNoSession means that the database does not
// serve this node. session.ErrBusy means that the server rolled back what may succeed the next
// time. All other errors stay as they are.
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

// ClassifyCommit is Classify for the error of a COMMIT: session.ErrOutcomeUnknown unless the error proves
// that nothing was stored.
func ClassifyCommit(err error) error {
	if err == nil || postgres.NotCommitted(err) {
		return Classify(err)
	}
	return fmt.Errorf("saving: %w: %w", session.ErrOutcomeUnknown, err)
}

// transact runs do in a transaction, and commits it unless do has an error. Errors are those of
// Classify, and of ClassifyCommit where the commit fails.
func transact(ctx context.Context, pool *pgxpool.Pool, do func(tx pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return Classify(err)
	}
	// A rollback after the commit does nothing. If ctx has ended, the pool closes the
	// connection, which rolls back too.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := do(tx); err != nil {
		return Classify(err)
	}
	return ClassifyCommit(tx.Commit(ctx))
}
