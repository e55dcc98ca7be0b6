package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/quota/session"
)

const (
	defaultPage = 450 * time.Millisecond
	// After a page shorter than pageShort, the next page may be larger. After one longer than pageLong, the
	// next page is smaller.
	pageShort, pageLong = 40 * time.Millisecond, 120 * time.Millisecond
	firstPage, maxPage  = 50, 2000
	// pageTries is the maximum number of attempts for a single slow row. The pause before each attempt is
	// longer, because the database may only have been busy.
	pageTries = 12
	pagePause = 20 * time.Millisecond
	// lookAgain is the pause before a row that disagrees is checked again.
	lookAgain = 100 * time.Millisecond
)

// wrong is a row that disagrees.
type wrong[K comparable] struct {
	key   K
	check string
	Disagreement
}

// walk visits all rows of a kind, in the order of their keys.
type walk[K comparable] struct {
	r      *Reconciler
	rows   string   // the kind of rows, for errors
	checks []string // the checks that count the rows
	// next lists the keys of at most n rows after a key.
	next func(ctx context.Context, tx pgx.Tx, after K, n int) ([]K, error)
	// look returns the disagreements among rows. All reads use one snapshot.
	look func(ctx context.Context, tx pgx.Tx, keys []K) ([]wrong[K], error)
}

// run visits all rows after a key.
func (w *walk[K]) run(ctx context.Context, after K, found *findings) error {
	for size := firstPage; ; {
		keys, err := w.list(ctx, after, size)
		if err != nil || len(keys) == 0 {
			return err
		}
		start := w.r.stopwatch()
		bad, err := w.looked(ctx, keys)
		if err != nil {
			return err
		}
		switch took := w.r.stopwatch() - start; {
		case took < pageShort:
			size = min(2*size, maxPage)
		case took > pageLong:
			size = max(1, size/2)
		}
		if err := w.tell(ctx, bad, found); err != nil {
			return err
		}
		for _, check := range w.checks {
			found.of[check].Checked += int64(len(keys))
		}
		after = keys[len(keys)-1]
	}
}

// list lists the keys of a page. If the list takes too long, it is retried with fewer keys.
func (w *walk[K]) list(ctx context.Context, after K, size int) (keys []K, err error) {
	for try := 1; ; try++ {
		err = w.r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
			keys, err = w.next(ctx, tx, after, size)
			return err
		})
		if !tooLong(ctx, err) || try == pageTries {
			return keys, w.explain(err)
		}
		size = max(1, size/2)
		if err := pause(ctx, time.Duration(try)*pagePause); err != nil {
			return nil, err
		}
	}
}

// looked checks rows in one snapshot. If the check takes too long, each half gets a snapshot of its own.
func (w *walk[K]) looked(ctx context.Context, keys []K) (bad []wrong[K], err error) {
	for try := 1; ; try++ {
		err = w.r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
			bad, err = w.look(ctx, tx, keys)
			return err
		})
		if !tooLong(ctx, err) || len(keys) == 1 && try == pageTries {
			return bad, w.explain(err)
		}
		if half := len(keys) / 2; half > 0 {
			first, err := w.looked(ctx, keys[:half])
			if err != nil {
				return nil, err
			}
			rest, err := w.looked(ctx, keys[half:])
			return append(first, rest...), err
		}
		if err := pause(ctx, time.Duration(try)*pagePause); err != nil {
			return nil, err
		}
	}
}

// tell checks rows that disagree again, and records the rows that still disagree.
func (w *walk[K]) tell(ctx context.Context, bad []wrong[K], found *findings) error {
	if len(bad) == 0 {
		return nil
	}
	if err := pause(ctx, lookAgain); err != nil {
		return err
	}
	var keys []K
	seen := make(map[K]bool, len(bad))
	for _, b := range bad {
		if !seen[b.key] {
			seen[b.key], keys = true, append(keys, b.key)
		}
	}
	bad, err := w.looked(ctx, keys)
	for _, b := range bad {
		found.add(b.check, b.Disagreement)
	}
	return err
}

func (w *walk[K]) explain(err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", w.rows, err)
	}
	return err
}

// tooLong reports whether the error of a snapshot means that the snapshot took too long, or that a replica
// could not keep it. The run then continues with smaller pages.
func tooLong(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || postgres.Retryable(err)
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// snapshot runs do in a read-only transaction that sees the database at one instant. The time limit is
// r.page.
func (r *Reconciler) snapshot(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(ctx, r.page)
	defer cancel()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	// If ctx has ended, the pool closes the connection, which also rolls back.
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", (r.page*8/9).Milliseconds())); err != nil {
		return err
	}
	if err := session.ByKey(ctx, tx); err != nil {
		return err
	}
	if r.page > defaultPage { // the transaction may be idle for that time
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", r.page.Milliseconds())); err != nil {
			return err
		}
	}
	return do(ctx, tx)
}
