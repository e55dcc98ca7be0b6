package sweep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

const (
	// clearArchivedEvery is the interval between searches for newly archived customers.
	clearArchivedEvery = 20 * time.Second
	// clearArchivedAgain is the interval after which all archived customers are cleared again, because a
	// node that had not learned of the archiving may have charged a customer late.
	clearArchivedAgain = 24 * time.Hour
	// clearPause is the pause between two transactions, which leaves the database to other work.
	clearPause = 50 * time.Millisecond
	// archivedPage and archivedRows limit one transaction.
	archivedPage = 200
	archivedRows = 1000
)

// Archiver removes the buckets of archived customers. It deletes the counters of attributes' values. The
// customer's own counters are kept, because they contain the charged units. In them, the Archiver books
// the units of the running hour as usage and clears the limits' state. It does not write a counter that
// is already cleared.
//
// All nodes may run an Archiver on the same database.
type Archiver struct {
	store   *store.Store
	usable  func() bool
	log     *slog.Logger
	grace   time.Duration // time after the archiving: a minute, except in tests
	removed atomic.Int64
	at      archivedAt // all customers up to this position are cleared
}

// archivedAt is a position in the walk over archived customers. The walk follows the time of archiving.
// Admin writes happen one after the other, so customers that are archived later follow in the walk.
type archivedAt struct {
	At time.Time
	ID int64
}

// NewArchiver returns an Archiver, which does nothing while usable reports that the database cannot be
// reached. A nil log means slog.Default.
func NewArchiver(store *store.Store, usable func() bool, log *slog.Logger) *Archiver {
	if log == nil {
		log = slog.Default()
	}
	return &Archiver{store: store, usable: usable, log: log, grace: time.Minute}
}

// Removed returns the number of counters removed since the start, without the customers' own counters.
func (a *Archiver) Removed() int64 { return a.removed.Load() }

// Run clears archived customers until ctx ends.
func (a *Archiver) Run(ctx context.Context) {
	since := time.Duration(0)
	work := upkeep.Repeated{
		Log: a.log, First: rand.N(clearArchivedEvery), Pause: clearArchivedEvery, //nolint:gosec // not all nodes at one time, and not a secret
		Fails: "archived customers' counters cannot be cleared now; it is tried again",
		Works: "archived customers' counters are cleared again",
		Do: func(ctx context.Context) error {
			if since += clearArchivedEvery; since >= clearArchivedAgain {
				since, a.at = 0, archivedAt{}
			}
			return a.clearAll(ctx)
		},
	}
	work.Run(ctx)
}

// clearAll clears all customers after a.at that are due. A counter that another transaction has locked is
// left out, and the next walk then begins at the page of that counter.
func (a *Archiver) clearAll(ctx context.Context) error {
	at, held := a.at, false
	for a.usable() {
		due, err := a.due(ctx, at)
		if err != nil || len(due) == 0 {
			return err
		}
		left, err := a.clear(ctx, due)
		if err != nil {
			return err
		}
		at = due[len(due)-1]
		if held = held || left; !held {
			a.at = at
		}
	}
	return nil
}

const archivedCustomers = `
	SELECT archived_at, id FROM customers
	WHERE archived_at IS NOT NULL AND (archived_at, id) > ($1, $2) AND archived_at < $3
	ORDER BY archived_at, id LIMIT $4`

// due returns the archived customers after a position, in the order of their archiving.
func (a *Archiver) due(ctx context.Context, behind archivedAt) ([]archivedAt, error) {
	ctx, cancel := context.WithTimeout(ctx, a.store.Within())
	defer cancel()
	now, err := a.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	rows, _ := a.store.Pool().Query(ctx, archivedCustomers, behind.At, behind.ID, now.Add(-a.grace), archivedPage)
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[archivedAt])
	return due, store.Classify(err)
}

// clear clears the counters of archived customers, some in each transaction. left is true if another
// transaction had locked a counter.
func (a *Archiver) clear(ctx context.Context, due []archivedAt) (left bool, err error) {
	customers := make([]int64, len(due))
	for i := range due {
		customers[i] = due[i].ID
	}
	for {
		done, err := a.clearSome(ctx, customers)
		if err != nil {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(clearPause):
		}
		if done.Rows < archivedRows {
			return done.Left, nil
		}
	}
}

func (a *Archiver) clearSome(ctx context.Context, customers []int64) (done upkeep.Cleared, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.store.Within())
	defer cancel()
	err = pgx.BeginFunc(ctx, a.store.Pool(), func(tx pgx.Tx) (err error) {
		done, err = upkeep.ClearCounters(ctx, tx, customers, true, archivedRows)
		return err
	})
	if err == nil {
		a.removed.Add(int64(done.Removed))
	}
	return done, store.Classify(err)
}
