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
	// clearArchivedEvery is how often newly archived customers are looked for.
	clearArchivedEvery = 20 * time.Second
	// clearArchivedAgain is how often all archived customers are cleared again. A node that
	// had not heard of the archiving may have charged one late.
	clearArchivedAgain = 24 * time.Hour
	// clearPause leaves the database to others between two transactions.
	clearPause = 50 * time.Millisecond
	// archivedPage and archivedRows bound one transaction.
	archivedPage = 200
	archivedRows = 1000
)

// Archiver removes the buckets of archived customers. It deletes the counters of attributes'
// values. A customer's own counters stay, since they hold what was charged. Of those it books
// the units of the running hour as usage and clears the limits' state. It does not write again
// what is cleared.
//
// All nodes may run one, on the same database.
type Archiver struct {
	store   *store.Store
	usable  func() bool
	log     *slog.Logger
	grace   time.Duration // how long after the archiving: a minute, except in tests
	removed atomic.Int64
	at      archivedAt // all customers up to here are cleared
}

// archivedAt is a position in the walk over archived customers. The walk goes by the time of
// archiving: admin writes happen one after the other, so later ones come after.
type archivedAt struct {
	At time.Time
	ID int64
}

// NewArchiver returns an Archiver, which does nothing while usable says that the database
// is out of reach. A nil log is slog.Default.
func NewArchiver(store *store.Store, usable func() bool, log *slog.Logger) *Archiver {
	if log == nil {
		log = slog.Default()
	}
	return &Archiver{store: store, usable: usable, log: log, grace: time.Minute}
}

// Removed is the number of counters removed since the start; own ones do not count.
func (a *Archiver) Removed() int64 { return a.removed.Load() }

// Run clears until ctx ends.
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

// clearAll clears all customers after a.at that are due. A counter that somebody has locked is
// left out. The next walk then begins at the page of that counter.
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

// due are the archived customers after a position, in the order of their archiving.
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

// clear clears the counters of archived customers, some in each transaction. left reports that
// somebody had one of them locked.
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
