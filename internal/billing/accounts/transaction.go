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

// Accounts keeps in the database how customers are billed, what prices their periods, and the open
// period. It is safe for concurrent use, and any number of nodes may have one on the same database.
type Accounts struct {
	*Hooks
	store *store.Store
	pool  *pgxpool.Pool
}

// New returns the accounts of a node. The hooks are those of the store.
func New(s *store.Store, hooks *Hooks) *Accounts {
	return &Accounts{hooks, s, s.Pool()}
}

// Within bounds every operation, the wait for locks included: as the store's.
func (as *Accounts) Within() time.Duration { return as.store.Within() }

// ByKey is the store's.
func (as *Accounts) ByKey(ctx context.Context, tx pgx.Tx) error { return as.store.ByKey(ctx, tx) }

// Snapshot runs do in a transaction that only reads, and sees the database at one instant.
func (as *Accounts) Snapshot(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return as.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

// Write runs do in a transaction. Its statements each see what was committed before them. What is
// about a customer locks its open period first, see Lock.
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
	// A rollback after the commit does nothing. If ctx has ended, the pool closes the
	// connection, which rolls back, too.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := as.ByKey(ctx, tx); err != nil {
		return store.Classify(err)
	}
	if err := do(ctx, tx); err != nil {
		return store.Classify(err)
	}
	err = tx.Commit(ctx)
	if options.AccessMode == pgx.ReadOnly { // there was nothing to commit
		return store.Classify(err)
	}
	return store.ClassifyCommit(err)
}

// oneRow reads one row. The error is missing when there is none.
func oneRow[T any](ctx context.Context, q postgres.Querier, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	rows, _ := q.Query(ctx, statement, args...)
	item, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return item, missing
	}
	return item, store.Classify(err)
}

// readRow is oneRow outside of a transaction, within the store's bound.
func readRow[T any](ctx context.Context, as *Accounts, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, as.store.Within())
	defer cancel()
	return oneRow(ctx, as.pool, missing, scan, statement, args...)
}
