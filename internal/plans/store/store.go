package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans"
	"quotad/internal/quota/session"
)

const defaultWithin = 10 * time.Second

// maxWriters limits the writes of a node that use a connection. Writes run one after the other anyway,
// and many waiting writes would take all connections of the pool from reads.
const maxWriters = 2

// KeptChanges limits the size of the table of changes. Each write deletes the row with the number that is
// KeptChanges lower. A node that was away for longer clears its memory.
const KeptChanges = 100_000

// The kinds of changes as stored.
const (
	KindMeter    = "meter"
	KindPlan     = "plan"
	KindCustomer = "customer"
	KindKey      = "key"
	KindClock    = "test_clock"
	// KindErased replaces KindCustomer when the customer's key is removed from the change, see
	// sweep.Sweeper.
	KindErased = "erased"
)

// Store reads and writes meters, plans, customers and keys in the database. Each method is one
// transaction. Its errors are the errors of package plans, model.FieldErrors, and session.ErrUnavailable
// if the database cannot be reached. The error of a write whose COMMIT was lost is
// session.ErrOutcomeUnknown. A Store is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	writers chan struct{} // one element for each write in progress
	options Options
	look    func(ctx context.Context, w *Writing) error // set for a Trial, otherwise nil
}

// Options configures the further actions of a Store's writes.
type Options struct {
	// Committed is called with the change number of each write before the write returns. Committed is nil on
	// a node that keeps no memory.
	Committed func(ctx context.Context, number int64)
	Billing   *Billing // nil if nobody is billed
	// Steady checks an instant of the database's clock, µs, against the clock that hits use, and returns the
	// instant to use, see postgres.Clock. If Steady is nil, the database's clock is used even when it steps.
	Steady func(ctx context.Context, us int64) int64
	// Within limits the duration of every operation, including waits for a connection and for the change
	// number's lock. The limit also applies to packages that use the Store. 0 means 10 s.
	Within time.Duration
}

// New returns a store on a pool whose database is migrated.
func New(pool *pgxpool.Pool, o Options) *Store {
	if o.Within <= 0 {
		o.Within = defaultWithin
	}
	return &Store{pool: pool, writers: make(chan struct{}, maxWriters), options: o}
}

// Pool returns the store's connection pool. Other packages use the pool for their reads, and for writes
// of which no node has to learn.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Within returns the time limit of every operation, see Options.
func (s *Store) Within() time.Duration { return s.options.Within }

const setIdleTimeout = `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`

// ByKey calls session.ByKey on a transaction. If Within is longer than its default, ByKey also sets the
// transaction's idle timeout to Within.
func (s *Store) ByKey(ctx context.Context, tx pgx.Tx) error {
	err := session.ByKey(ctx, tx)
	if err == nil && s.Within() > defaultWithin {
		_, err = tx.Exec(ctx, setIdleTimeout, strconv.FormatInt(s.Within().Milliseconds(), 10))
	}
	return err
}

// steady returns an instant of the database's clock, corrected by Options.Steady.
func (s *Store) steady(ctx context.Context, at time.Time) time.Time {
	if s.options.Steady == nil {
		return at
	}
	if us := s.options.Steady(ctx, at.UnixMicro()); us != at.UnixMicro() {
		return time.UnixMicro(us)
	}
	return at
}

const readClock = `SELECT clock_timestamp()`

// Now returns the database's time, see Options.Steady.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.pool.QueryRow(ctx, readClock).Scan(&now)
	return s.steady(ctx, now), Classify(err)
}

// Writing is a transaction that holds the lock on the change number.
type Writing struct {
	pgx.Tx
	Number int64     // number of this change
	Now    time.Time // time of the database's clock under the lock, see Options.Steady

	// Open is the customer's open billing period, see WriteCustomer. Open is nil if the customer is not
	// billed.
	Open *Open

	// Cut is the instant at which this write ended the running billing period, µs, or nil if the period goes
	// on.
	Cut *int64

	// Scheduled is the customer's pending change of plan, see WriteCustomer. Scheduled is nil if no change
	// is pending, or if the change is to be dropped. laid is the change when the write begins, and again
	// once the change is inserted.
	Scheduled *Scheduled
	laid      *plans.ScheduledChange
	lifted    *plans.ScheduledChange // the change when the write began; nil if there was none
	liftedOf  int64                  // id of the customer of lifted
	audit     func() plans.Audited   // audit entry to be built when all is written; nil if there is none

	store     *Store
	kind, key string // subject of the change
	audited   bool
	settled   bool // a scheduled change that applies was written into the customer
	billing   *Billing
}

// errUnchanged ends a Write that has nothing to write, and makes the Write succeed. The transaction is
// rolled back, so its change number is free again. If the Write has settled a scheduled change, the
// transaction is committed instead.
var errUnchanged = errors.New("nothing to change")

// Unchanged returns errUnchanged, which the function of a Write returns if it has nothing to write. The
// Write then succeeds.
func Unchanged() error { return errUnchanged }

// Write runs do in a transaction that locks the change number from its first statement to its commit.
// Admin writes therefore happen one after the other, so do may check first and write afterwards. Numbers
// have no gaps and become visible in order. The change is recorded as a change of kind and key. If an
// actor makes the change, do must record it by calling Audit.
func (s *Store) Write(ctx context.Context, kind, key string, do func(ctx context.Context, w *Writing) error) error {
	return s.write(ctx, kind, key, nil, do)
}

// write is Write with a function first that runs before the change number is taken, unless first is nil.
func (s *Store) write(ctx context.Context, kind, key string, first, do func(ctx context.Context, w *Writing) error) error {
	number, err := s.transact(ctx, kind, key, first, do)
	if s.options.Committed != nil && number > 0 {
		s.options.Committed(ctx, number)
	}
	return err
}

const takeChangeNumber = `UPDATE change_number SET number = number + 1 RETURNING number, clock_timestamp()`

// transact runs the transaction of Write. transact returns the change's number, or 0 if there was no
// change.
func (s *Store) transact(ctx context.Context, kind, key string, first, do func(ctx context.Context, w *Writing) error) (number int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	select {
	case s.writers <- struct{}{}:
		defer func() { <-s.writers }()
	case <-ctx.Done():
		return 0, Classify(ctx.Err())
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return 0, Classify(err)
	}
	// A rollback after the commit does nothing. If ctx has ended, the pool closes the connection, which also
	// rolls back.
	defer func() { _ = tx.Rollback(ctx) }()
	w := &Writing{Tx: tx, store: s, kind: kind, key: key}
	if first != nil {
		if err := first(ctx, w); err != nil {
			return 0, Classify(err)
		}
	}
	if err := tx.QueryRow(ctx, takeChangeNumber).Scan(&w.Number, &w.Now); err != nil {
		return 0, Classify(err)
	}
	w.Now = s.steady(ctx, w.Now)
	if s.look != nil {
		return 0, Classify(s.try(ctx, w, do))
	}
	err = do(ctx, w)
	unchanged := errors.Is(err, errUnchanged)
	switch _, acts := plans.ActorOf(ctx); {
	case unchanged && !w.settled:
		return 0, nil
	case err != nil && !unchanged:
		return 0, Classify(err)
	case acts && !w.audited && !unchanged:
		return 0, errUnaudited
	}
	if err := w.announce(ctx); err != nil {
		return 0, Classify(err)
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, ClassifyCommit(err)
	}
	return w.Number, nil
}

const recordChange = `
	WITH pruned AS (DELETE FROM changes WHERE number = $1 - $4::bigint),
	     recorded AS (INSERT INTO changes (number, kind, key, at) VALUES ($1, $2, $3, clock_timestamp()))
	SELECT pg_notify('quotad_changes', $1::bigint::text)`

// announce records the change for nodes that poll and notifies nodes that listen. The commit sends the
// notification.
func (w *Writing) announce(ctx context.Context) error {
	_, err := w.Exec(ctx, recordChange, w.Number, w.kind, w.key, int64(KeptChanges))
	return err
}

// recordChanges deletes, for each change, the row whose number is KeptChanges lower, as announce does.
const recordChanges = `
	WITH pruned AS (
		DELETE FROM changes WHERE number >= $1 - $3::bigint AND number < $1 - $3::bigint + cardinality($2::text[])
	), recorded AS (
		INSERT INTO changes (number, kind, key, at)
		SELECT $1 + k.n - 1, 'customer', k.key, clock_timestamp() FROM unnest($2::text[]) WITH ORDINALITY AS k(key, n))
	UPDATE change_number SET number = number + cardinality($2::text[]) RETURNING number`

// Changed splits the current change into one change for each of several customers, each with a number of
// its own. Changed records all changes except the last, which announce records.
func (w *Writing) Changed(ctx context.Context, keys []string) error {
	last := len(keys) - 1
	w.key = keys[last]
	if last == 0 {
		return nil
	}
	return w.QueryRow(ctx, recordChanges, w.Number, keys[:last], int64(KeptChanges)).Scan(&w.Number)
}

// list reads one page of a list. The statement's last two parameters are the position after which the
// page begins, which is the last of args, and the number of rows.
func list[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], statement string, limit int, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	// CollectRows returns the error of a failed Query.
	rows, _ := s.pool.Query(ctx, statement, append(args, limit+1)...)
	items, err := pgx.CollectRows(rows, scan)
	return items, Classify(err)
}

// read calls one outside of a transaction, within the store's time limit.
func read[T any](ctx context.Context, s *Store, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	return one(ctx, s.pool, missing, scan, statement, args...)
}

// one reads one row. The error is missing if there is no row.
func one[T any](ctx context.Context, from querier, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	rows, _ := from.Query(ctx, statement, args...)
	item, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return item, missing
	}
	return item, Classify(err)
}

// querier is the pool or an open transaction.
type querier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
}

// changed calls Billing.Changed if there is billing.
func (w *Writing) changed(ctx context.Context, change *CustomerChange) error {
	if w.billing == nil {
		return nil
	}
	return w.billing.Changed(ctx, w, change)
}

// running calls Billing.Running for a customer with an open period, and returns nil for other customers.
func (w *Writing) running(ctx context.Context, c *plans.Customer) (*Running, error) {
	if w.Open == nil || w.Open.End == 0 {
		return nil, nil //nolint:nilnil // none runs, which is no error
	}
	return w.billing.Running(ctx, w, c, w.InstantOf(c))
}

// InstantOf returns the time of a customer's clock, µs.
func (w *Writing) InstantOf(c *plans.Customer) int64 {
	if c.Clock != nil {
		return c.Clock.Now
	}
	return w.Now.UnixMicro()
}
