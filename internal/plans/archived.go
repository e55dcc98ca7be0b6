package plans

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// clearArchivedEvery is how often newly archived customers are looked for.
	clearArchivedEvery = 20 * time.Second
	// clearArchivedAgain is how often all of them are, for what a node that had not heard
	// of it charged late, or a hit held.
	clearArchivedAgain = 24 * time.Hour
	// clearPause leaves the database to others between two transactions.
	clearPause = 50 * time.Millisecond
	// archivedPage and archivedRows bound one transaction.
	archivedPage = 200
	archivedRows = 1000
)

// Clearer removes the buckets of archived customers: the counters of attributes' values
// whole; of their own counters, which are the account of what was charged, the state of
// the limits, after booking the units of the running hour as usage. What is cleared
// already is not written again.
//
// All nodes may run one, on the same database.
type Clearer struct {
	store   *Store
	usable  func() bool
	log     *slog.Logger
	grace   time.Duration // how long after the archiving, but for tests a minute
	removed atomic.Int64
	at      archivedAt
}

// archivedAt is where the walk over archived customers has come to. It goes by the time
// of archiving, which later ones are behind of: admin writes happen one after the other.
type archivedAt struct {
	At time.Time
	ID int64
}

// NewClearer returns a Clearer, which does nothing while usable says that the database is
// out of reach. A nil log is slog.Default.
func NewClearer(store *Store, usable func() bool, log *slog.Logger) *Clearer {
	if log == nil {
		log = slog.Default()
	}
	return &Clearer{store: store, usable: usable, log: log, grace: time.Minute}
}

// Removed is the number of counters removed since the start; own ones do not count.
func (c *Clearer) Removed() int64 { return c.removed.Load() }

// Run clears until ctx ends. An error is logged once until it goes well again.
func (c *Clearer) Run(ctx context.Context) {
	timer := time.NewTimer(rand.N(clearArchivedEvery)) //nolint:gosec // not all nodes at one time, and not a secret
	defer timer.Stop()
	failing := false
	for since := time.Duration(0); ; since += clearArchivedEvery {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if since >= clearArchivedAgain {
			since, c.at = 0, archivedAt{}
		}
		err := c.clearAll(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			c.log.Warn("archived customers' counters cannot be cleared now; it is tried again", "error", err)
		}
		failing = err != nil
		timer.Reset(clearArchivedEvery)
	}
}

// clearAll clears all customers behind c.at that are due.
func (c *Clearer) clearAll(ctx context.Context) error {
	for c.usable() {
		due, err := c.due(ctx)
		if err != nil || len(due) == 0 {
			return err
		}
		for more := true; more; {
			if more, err = c.clear(ctx, due); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(clearPause):
			}
		}
		c.at = due[len(due)-1]
	}
	return nil
}

const archivedCustomers = `
	SELECT archived_at, id FROM customers
	WHERE archived_at IS NOT NULL AND (archived_at, id) > ($1, $2) AND archived_at < clock_timestamp() - $3::interval
	ORDER BY archived_at, id LIMIT $4`

// due are the next archived customers, in the order of their archiving.
func (c *Clearer) due(ctx context.Context) ([]archivedAt, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, _ := c.store.pool.Query(ctx, archivedCustomers, c.at.At, c.at.ID, c.grace, archivedPage)
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[archivedAt])
	return due, classify(err)
}
