package closing

import (
	"context"
	"sync/atomic"

	"quotad/internal/plans/store"
)

// watched is how billing stood when the worker last looked, for metrics. A scrape asks no database.
type watched struct{ blocked, oldest, overdue atomic.Int64 }

// MaxOverdue is up to where overdue invoices are counted.
const MaxOverdue = 1000

const readStanding = `
	SELECT (SELECT count(*) FROM open_periods WHERE blocked IS NOT NULL),
		coalesce((SELECT min(due_at) FROM open_periods WHERE clock_id IS NULL), 0),
		(SELECT count(*) FROM (SELECT FROM unpaid_invoices WHERE clock_id IS NULL AND told_at IS NOT NULL LIMIT $1) o)`

// watch looks how billing stands.
func (w *Worker) watch(ctx context.Context) error {
	var blocked, oldest, overdue int64
	if err := w.pool.QueryRow(ctx, readStanding, MaxOverdue).Scan(&blocked, &oldest, &overdue); err != nil {
		return store.Classify(err)
	}
	w.watched.blocked.Store(blocked)
	w.watched.oldest.Store(oldest)
	w.watched.overdue.Store(overdue)
	return nil
}

// Standing is how billing stood when this node last looked, at most a second ago while the database
// answers. blocked is how many customers' periods cannot be closed, or invoices not be finalized.
// oldestDue is when anything is or was to be done next, in µs, for customers of PostgreSQL's time; 0
// is never.
func (w *Worker) Standing() (blocked, oldestDue int64) {
	return w.watched.blocked.Load(), w.watched.oldest.Load()
}

// Overdue is how many invoices of customers of PostgreSQL's time were overdue when this node last looked,
// at most MaxOverdue.
func (w *Worker) Overdue() int64 { return w.watched.overdue.Load() }
