package accounts

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// Accounts stores how customers are billed, the prices of their periods, and their open periods. It is safe
// for concurrent use, and any number of nodes may use the same database.
type Accounts struct {
	*Hooks
	store *store.Store
	pool  *pgxpool.Pool
}

// New returns the accounts of a node. hooks must be the store's hooks.
func New(s *store.Store, hooks *Hooks) *Accounts {
	return &Accounts{hooks, s, s.Pool()}
}

// Within returns the time limit of every operation, waits for locks included. It is the store's limit.
func (as *Accounts) Within() time.Duration { return as.store.Within() }

// ByKey calls the store's ByKey.
func (as *Accounts) ByKey(ctx context.Context, tx pgx.Tx) error { return as.store.ByKey(ctx, tx) }

// Snapshot runs do in a read-only transaction that sees the database at one instant.
func (as *Accounts) Snapshot(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return as.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

// Write runs do in a transaction. Each statement sees the changes that were committed before the statement.
// An operation on a customer locks the customer's open period first, see Lock.
func (as *Accounts) Write(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return as.transact(ctx, pgx.TxOptions{}, do)
}

func (as *Accounts) transact(ctx context.Context, options pgx.TxOptions, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, as.store.Within())
	defer cancel()
	tx, err := as.pool.BeginTx(ctx, options)
	if err != nil {
		return store.Classify(err)
	}
	// A rollback after the commit does nothing. If ctx has ended, the pool closes the connection, which also
	// rolls back.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := as.ByKey(ctx, tx); err != nil {
		return store.Classify(err)
	}
	if err := do(ctx, tx); err != nil {
		return store.Classify(err)
	}
	err = tx.Commit(ctx)
	if options.AccessMode == pgx.ReadOnly { // a read-only transaction has nothing to commit
		return store.Classify(err)
	}
	return store.ClassifyCommit(err)
}

// oneRow reads one row. It returns the error missing if there is no row.
func oneRow[T any](ctx context.Context, q postgres.Querier, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	rows, _ := q.Query(ctx, statement, args...)
	item, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return item, missing
	}
	return item, store.Classify(err)
}

// readRow reads one row outside of a transaction, within the store's time limit.
func readRow[T any](ctx context.Context, as *Accounts, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, as.store.Within())
	defer cancel()
	return oneRow(ctx, as.pool, missing, scan, statement, args...)
}
