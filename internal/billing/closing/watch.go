package closing

import (
	"context"
	"sync/atomic"

	"quotad/internal/plans/store"
)

// watched is how billing stood when the worker last looked, for metrics. A scrape asks no database.
type watched struct{ blocked, oldest atomic.Int64 }

const readStanding = `
	SELECT (SELECT count(*) FROM open_periods WHERE blocked IS NOT NULL),
		coalesce((SELECT min(due_at) FROM open_periods WHERE clock_id IS NULL), 0)`

// watch looks how billing stands.
func (w *Worker) watch(ctx context.Context) error {
	var blocked, oldest int64
	if err := w.pool.QueryRow(ctx, readStanding).Scan(&blocked, &oldest); err != nil {
		return store.Classify(err)
	}
	w.watched.blocked.Store(blocked)
	w.watched.oldest.Store(oldest)
	return nil
}

// Standing is how billing stood when this node last looked, at most a second ago while the database
// answers. blocked is how many customers' periods cannot be closed, or invoices not be finalized.
// oldestDue is when anything is or was to be done next, in µs, for customers of PostgreSQL's time; 0
// is never.
func (w *Worker) Standing() (blocked, oldestDue int64) {
	return w.watched.blocked.Load(), w.watched.oldest.Load()
}
