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

// maxWriters bounds the writes of a node that hold a connection. They run one after the other
// anyway. Many that wait for the lock would take all connections of the pool from reads.
const maxWriters = 2

// KeptChanges bounds the table of changes: each write deletes the row that many numbers back.
// A node that was away for longer forgets all that it knows.
const KeptChanges = 100_000

// The kinds of changes, as stored.
const (
	KindMeter    = "meter"
	KindPlan     = "plan"
	KindCustomer = "customer"
	KindKey      = "key"
	KindClock    = "test_clock"
	// KindErased takes the place of KindCustomer once the key is taken out, see sweep.Sweeper.
	KindErased = "erased"
)

// Store reads and writes meters, plans, customers and keys in the database. Each method is one
// transaction. Its errors are those of package plans, model.FieldErrors, and
// session.ErrUnavailable when the database is out of reach. A write whose COMMIT was lost is
// session.ErrOutcomeUnknown. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	writers chan struct{} // one element for each write under way
	options Options
	look    func(ctx context.Context, w *Writing) error // of a Trial; else nil
}

// Options say what else happens in and after a Store's writes.
type Options struct {
	// Committed is called with the change number of each write, before the write returns; nil:
	// this node keeps no memory.
	Committed func(ctx context.Context, number int64)
	Billing   *Billing // nil: nobody is billed
	// Steady is postgres.Clock's: it holds an instant of the database's clock, µs, against the
	// clock that hits go by. Nil: the database's own clock counts, however it steps.
	Steady func(ctx context.Context, us int64) int64
	// Within bounds every operation, the waits for a connection and for the change number's lock
	// included; those of who works with the Store, too. 0 means 10 s.
	Within time.Duration
}

// New returns a store on a pool whose database is migrated.
func New(pool *pgxpool.Pool, o Options) *Store {
	if o.Within <= 0 {
		o.Within = defaultWithin
	}
	return &Store{pool: pool, writers: make(chan struct{}, maxWriters), options: o}
}

// Pool is the store's connection pool. Others use it for their reads, and for writes that no
// node has to hear of.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Within bounds every operation, see Options.
func (s *Store) Within() time.Duration { return s.options.Within }

const setIdleTimeout = `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`

// ByKey is session.ByKey for a transaction. Where an operation has longer than usual, it may be idle for as
// long.
func (s *Store) ByKey(ctx context.Context, tx pgx.Tx) error {
	err := session.ByKey(ctx, tx)
	if err == nil && s.Within() > defaultWithin {
		_, err = tx.Exec(ctx, setIdleTimeout, strconv.FormatInt(s.Within().Milliseconds(), 10))
	}
	return err
}

// steady is an instant of the database's clock, see Options.Steady.
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

// Now is the database's time, see Options.Steady.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.pool.QueryRow(ctx, readClock).Scan(&now)
	return s.steady(ctx, now), Classify(err)
}

// Writing is a transaction that holds the change number's lock.
type Writing struct {
	pgx.Tx
	Number int64     // of this change
	Now    time.Time // the database's clock, read under the lock, see Options.Steady

	// Open is the customer's open billing period, see WriteCustomer; nil: it is not billed.
	Open *Open

	// Cut is where this write has ended the running billing period, µs; nil: it did not.
	Cut *int64

	// Scheduled is the customer's change of plan that waits, see WriteCustomer; nil: none, or it is to
	// be dropped. laid is how it was when the write began, and how it is once it is put back.
	Scheduled *Scheduled
	laid      *plans.ScheduledChange
	lifted    *plans.ScheduledChange // as it was when the write began; nil: none
	liftedOf  int64                  // its customer
	audit     func() plans.Audited   // of a change that is known when all is written; nil: none

	store     *Store
	kind, key string // what the change is about
	audited   bool
	settled   bool // a scheduled change that counts was written into the customer
	billing   *Billing
}

// errUnchanged ends a Write that has nothing to write. The transaction is rolled back, so its
// change number is free again. It is committed if it has settled a scheduled change. The Write is a
// success.
var errUnchanged = errors.New("nothing to change")

// Unchanged is what the function of a Write returns when it has nothing to write, see
// errUnchanged. Write takes it for a success.
func Unchanged() error { return errUnchanged }

// Write runs do in a transaction that locks the change number from its first statement to its
// commit. So admin writes happen one after the other, and do may check first and write then.
// Numbers have no gaps and become visible in order. The change is recorded as one about kind
// and key. Where an actor makes it, do tells by Audit what it changes.
func (s *Store) Write(ctx context.Context, kind, key string, do func(ctx context.Context, w *Writing) error) error {
	return s.write(ctx, kind, key, nil, do)
}

// write is Write. first comes before the change number is taken; nil: nothing does.
func (s *Store) write(ctx context.Context, kind, key string, first, do func(ctx context.Context, w *Writing) error) error {
	number, err := s.transact(ctx, kind, key, first, do)
	if s.options.Committed != nil && number > 0 {
		s.options.Committed(ctx, number)
	}
	return err
}

const takeChangeNumber = `UPDATE change_number SET number = number + 1 RETURNING number, clock_timestamp()`

// transact is the transaction of Write. It returns the change's number, or 0 when there
// was none.
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
	// A rollback after the commit does nothing. If ctx has ended, the pool closes the
	// connection, which rolls back too.
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

// announce records what changed, for nodes that poll, and wakes those that listen. The
// notice is sent by the commit.
func (w *Writing) announce(ctx context.Context) error {
	_, err := w.Exec(ctx, recordChange, w.Number, w.kind, w.key, int64(KeptChanges))
	return err
}

// recordChanges deletes, for each change, the row that is KeptChanges back, as announce does.
const recordChanges = `
	WITH pruned AS (
		DELETE FROM changes WHERE number >= $1 - $3::bigint AND number < $1 - $3::bigint + cardinality($2::text[])
	), recorded AS (
		INSERT INTO changes (number, kind, key, at)
		SELECT $1 + k.n - 1, 'customer', k.key, clock_timestamp() FROM unnest($2::text[]) WITH ORDINALITY AS k(key, n))
	UPDATE change_number SET number = number + cardinality($2::text[]) RETURNING number`

// Changed turns the change under way into one change for each of several customers. Each gets
// a number of its own. All but the last are recorded here; announce records the last.
func (w *Writing) Changed(ctx context.Context, keys []string) error {
	last := len(keys) - 1
	w.key = keys[last]
	if last == 0 {
		return nil
	}
	return w.QueryRow(ctx, recordChanges, w.Number, keys[:last], int64(KeptChanges)).Scan(&w.Number)
}

// list reads one page of a list. The statement's last parameters are the position to go on
// from, which is the last of args, and the number of rows.
func list[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], statement string, limit int, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	// A failed Query comes back as the error of CollectRows.
	rows, _ := s.pool.Query(ctx, statement, append(args, limit+1)...)
	items, err := pgx.CollectRows(rows, scan)
	return items, Classify(err)
}

// read is one outside of a transaction, within the store's bound.
func read[T any](ctx context.Context, s *Store, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	return one(ctx, s.pool, missing, scan, statement, args...)
}

// one reads one row. The error is missing when there is none.
func one[T any](ctx context.Context, from querier, missing error, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	rows, _ := from.Query(ctx, statement, args...)
	item, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return item, missing
	}
	return item, Classify(err)
}

// querier is the pool, or a transaction under way.
type querier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
}

// changed tells billing, if there is any.
func (w *Writing) changed(ctx context.Context, change *CustomerChange) error {
	if w.billing == nil {
		return nil
	}
	return w.billing.Changed(ctx, w, change)
}

// running is Billing.Running for a customer that has an open period.
func (w *Writing) running(ctx context.Context, c *plans.Customer) (*Running, error) {
	if w.Open == nil || w.Open.End == 0 {
		return nil, nil //nolint:nilnil // none runs, which is no error
	}
	return w.billing.Running(ctx, w, c, w.InstantOf(c))
}

// InstantOf is what a customer's clock shows, µs.
func (w *Writing) InstantOf(c *plans.Customer) int64 {
	if c.Clock != nil {
		return c.Clock.Now
	}
	return w.Now.UnixMicro()
}
