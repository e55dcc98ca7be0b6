package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/quota"
	"quotad/internal/quota/session"
)

// Options configure a Ledger. All parts are required.
type Options struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Hooks   *Hooks // those of Store
	Catalog *catalog.Catalog
	Engine  *quota.Engine
	// Now is the database's time, µs since the Unix epoch.
	Now func(ctx context.Context) (int64, error)
	// Stopwatch shows the time since some moment, and never steps.
	Stopwatch func() time.Duration
	Log       *slog.Logger // nil: slog.Default

	// CorrectionTime is how long a draft stays one. It is the same on all nodes.
	CorrectionTime time.Duration

	Pace int // customers that Run closes in a second at most, while many are due; 0: DefaultPace
}

// Ledger keeps accounts, periods, invoices and credits in the database. It is safe for
// concurrent use, and any number of nodes may have one on the same database.
type Ledger struct {
	*Hooks
	options        Options
	pool           *pgxpool.Pool
	correctionTime int64 // µs
	wake           chan struct{}
	stepTimeout    time.Duration // the constant; tests shorten it
	wakeAtOnce     int           // the constant; tests lower it
	size           atomic.Int64  // of the worker's next batch
	worked         worked
	watched        watched
}

// New returns a ledger. It starts nothing: see Run.
func New(o Options) *Ledger {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Pace <= 0 {
		o.Pace = DefaultPace
	}
	l := &Ledger{
		Hooks: o.Hooks, options: o, pool: o.Pool, wake: make(chan struct{}, 1), stepTimeout: stepTimeout, wakeAtOnce: wakeAtOnce,
		correctionTime: o.CorrectionTime.Microseconds(),
	}
	l.size.Store(batchLeast)
	return l
}

// statementTimeout bounds every operation that a client waits for, the wait for locks included.
const statementTimeout = 10 * time.Second

// querier is the pool, or a transaction under way.
type querier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// forEach reads rows, each into the same places, and calls do after each.
func forEach(ctx context.Context, q querier, into []any, do func() error, statement string, args ...any) error {
	rows, _ := q.Query(ctx, statement, args...) // a failed Query is the error of ForEachRow
	_, err := pgx.ForEachRow(rows, into, do)
	return err
}

// queueEach is forEach as a statement of a batch. The statements of a batch take one round trip.
func queueEach(b *pgx.Batch, into []any, do func() error, statement string, args ...any) {
	b.Queue(statement, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, do)
		return err
	})
}

// run sends a batch, and gives what its statements return to who queued them.
func run(ctx context.Context, q querier, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return q.SendBatch(ctx, b).Close()
}

// snapshot runs do in a transaction that only reads, and sees the database at one instant.
func (l *Ledger) snapshot(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return l.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

// write runs do in a transaction. Its statements each see what was committed before them. do locks
// the customer's open period first, see lock.
func (l *Ledger) write(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return l.transact(ctx, pgx.TxOptions{}, do)
}

func (l *Ledger) transact(ctx context.Context, options pgx.TxOptions, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	tx, err := l.pool.BeginTx(ctx, options)
	if err != nil {
		return store.Classify(err)
	}
	// A rollback after the commit does nothing. If ctx has ended, the pool closes the
	// connection, which rolls back, too.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := session.ByKey(ctx, tx); err != nil {
		return store.Classify(err)
	}
	if err := do(ctx, tx); err != nil {
		return store.Classify(err)
	}
	err = tx.Commit(ctx)
	if options.AccessMode == pgx.ReadOnly { // there was nothing to commit
		return store.Classify(err)
	}
	return store.Settle(err)
}

// oneRow reads one row. The error is missing when there is none.
func oneRow[T any](ctx context.Context, q querier, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, _ := q.Query(ctx, statement, args...)
	item, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return item, missing
	}
	return item, store.Classify(err)
}

// queueRows adds a statement to a batch whose parameter is all rows of a table, if there are any.
func queueRows[T any](b *pgx.Batch, statement string, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	all, err := json.Marshal(rows)
	if err == nil {
		b.Queue(statement, string(all))
	}
	return err
}
