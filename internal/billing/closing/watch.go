package closing

import (
	"context"
	"sync/atomic"

	"quotad/internal/plans/store"
)

// watched is the state of billing at the worker's last check, for metrics, so that a scrape needs no query.
type watched struct{ blocked, oldest, overdue atomic.Int64 }

// MaxOverdue is the maximum result of Overdue; further overdue invoices are not counted.
const MaxOverdue = 1000

const readStanding = `
	SELECT (SELECT count(*) FROM open_periods WHERE blocked IS NOT NULL),
		coalesce((SELECT min(due_at) FROM open_periods WHERE clock_id IS NULL), 0),
		(SELECT count(*) FROM (SELECT FROM unpaid_invoices WHERE clock_id IS NULL AND told_at IS NOT NULL LIMIT $1) o)`

// watch reads the state of billing.
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

// Standing returns the state of billing at this node's last check, which is at most a second old while the
// database responds. blocked is the number of customers with a period that cannot be closed or an invoice
// that cannot be finalized. oldestDue is the instant of the earliest next step, in µs, among customers on
// PostgreSQL's time, or 0 if no such customer exists.
func (w *Worker) Standing() (blocked, oldestDue int64) {
	return w.watched.blocked.Load(), w.watched.oldest.Load()
}

// Overdue returns the number of overdue invoices at this node's last check, at most MaxOverdue. It counts
// only customers on PostgreSQL's time.
func (w *Worker) Overdue() int64 { return w.watched.overdue.Load() }
