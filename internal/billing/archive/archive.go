package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
	"quotad/internal/quota/upkeep"
	"quotad/internal/quota/usage"
)

// Archiver archives the old months of one database, while nodes serve on it. Pool and Now are required.
type Archiver struct {
	Pool *pgxpool.Pool
	Now  func(context.Context) (int64, error) // the database's time, µs
	// Done is called after each month is archived. It may be nil.
	Done func(upkeep.ArchivedMonth)
	// Settle is the time for which nodes may still use an earlier setting of a test clock. 0 means 3 s.
	Settle time.Duration
}

// Report is the result of a run, or the expected result in a dry run.
type Report struct {
	Booked        int                    // the number of counters with units of old hours
	Months        []upkeep.ArchivedMonth // the archived months
	usage.Archive                        // the archive after the run
}

// RefusedError is the reason why nothing was done.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

const (
	// archiveLock is the advisory lock that a running Archiver holds.
	archiveLock = 0x71756f746178 // "quotax"
	// settled is the default of Archiver.Settle. A change takes effect on all nodes within a second, and each
	// node writes its refusals within another second.
	settled = 3 * time.Second
	// lockPause is the pause between two attempts to lock the billing tables, which others lock for a few
	// milliseconds.
	lockPause = 200 * time.Millisecond
)

// Run archives all hours before an instant. The instant must be the start of a month in UTC, and not later than
// the start of the month before the current one. After an interrupted run, Run with the same instant continues.
// Usage is always complete, even if Run fails, because each month is archived in one transaction.
//
// Errors: RefusedError and *upkeep.NotWholeError. In both cases nothing was changed.
func (a *Archiver) Run(ctx context.Context, before time.Time) (report Report, err error) {
	bound := before.UnixMicro()
	conn, err := a.Pool.Acquire(ctx)
	if err != nil {
		return report, err
	}
	defer conn.Release()
	var alone bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, archiveLock).Scan(&alone); err != nil {
		return report, err
	} else if !alone {
		return report, RefusedError("another quotad archive is at work on this database")
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, archiveLock) }()
	if err := a.Check(ctx, before); err != nil {
		return report, err
	}
	if err := a.forbid(ctx, bound); err != nil {
		return report, err
	}
	if report.Booked, err = a.book(ctx, bound); err != nil {
		return report, err
	}
	if err := upkeep.Refuse(ctx, a.Pool, bound); err != nil {
		return report, err
	}
	for {
		month, err := upkeep.TakeOut(ctx, a.Pool, bound)
		if err != nil {
			return report, err
		}
		if month == nil {
			break
		}
		report.Months = append(report.Months, *month)
		if a.Done != nil {
			a.Done(*month)
		}
	}
	report.Archive, err = usage.ReadArchive(ctx, a.Pool)
	return report, err
}

// forbid sets the bound in the database, which then rejects bills and corrections of earlier hours. It locks the
// billing tables during the final check, so that nobody writes to them.
func (a *Archiver) forbid(ctx context.Context, bound int64) error {
	for {
		err := pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
			for _, sql := range []string{
				`SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '10s'`,
				`LOCK TABLE open_periods, test_clocks, open_adjustments, invoices IN SHARE ROW EXCLUSIVE MODE`,
			} {
				if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					return err
				}
			}
			if err := waitsFor(ctx, tx, bound); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE archive SET before = $1`, bound)
			return err
		})
		if err == nil || !postgres.Retryable(err) {
			return err
		}
		if err := pause(ctx, lockPause); err != nil {
			return err
		}
	}
}

// book books the units in counters whose hours are before the bound. Hits no longer add units to these hours,
// because the clock and all test clocks are far past them. The second pass therefore finds nothing.
func (a *Archiver) book(ctx context.Context, bound int64) (booked int, err error) {
	var clocks bool
	if err := a.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM test_clocks)`).Scan(&clocks); err != nil {
		return 0, err
	}
	if clocks {
		wait := a.Settle
		if wait == 0 {
			wait = settled
		}
		if err := pause(ctx, wait); err != nil {
			return 0, err
		}
	}
	for {
		n, err := upkeep.BookBefore(ctx, a.Pool, bound)
		if booked += n; err != nil || n == 0 {
			return booked, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Check reports whether Run would succeed, and changes nothing. Its errors are those of Run.
func (a *Archiver) Check(ctx context.Context, before time.Time) error {
	now, err := a.Now(ctx)
	if err != nil {
		return err
	}
	year, month, _ := time.UnixMicro(now).UTC().Date()
	latest := time.Date(year, month-1, 1, 0, 0, 0, 0, time.UTC)
	year, month, _ = before.UTC().Date()
	switch {
	case !before.Equal(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)):
		return RefusedError("it must be the first instant of a month, UTC, such as 2026-01-01T00:00:00Z")
	case before.After(latest):
		return RefusedError(fmt.Sprintf("it is too young: refunds, and billing periods that run, reach back a month. The latest that can be given now is %s",
			shown(latest)))
	}
	was, err := usage.ReadArchive(ctx, a.Pool)
	if err != nil {
		return err
	}
	bound := before.UnixMicro()
	if was.Before > bound {
		return RefusedError(fmt.Sprintf("all before %s is archived already", shown(time.UnixMicro(was.Before))))
	}
	if err := upkeep.CanArchive(ctx, a.Pool, bound); err != nil {
		return err
	}
	if err := waitsFor(ctx, a.Pool, bound); err != nil {
		return err
	}
	return runsFor(ctx, a.Pool, now, bound)
}

func shown(t time.Time) string { return t.UTC().Format(time.RFC3339) }
