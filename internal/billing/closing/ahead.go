package closing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/quota/upkeep"
)

// Ahead finds counters that were charged in the future, since the database's clock was ahead, and
// brings them back. Any number of nodes may serve meanwhile. All parts are required.
type Ahead struct {
	Pool    *pgxpool.Pool
	Catalog *catalog.Catalog
	Engine  *quota.Engine
	Now     func(context.Context) (int64, error) // the database's time, µs
}

// AheadReport is what was found and done. Counters of test clocks are not ahead, whatever they say.
type AheadReport struct {
	Ahead    int   // counters, of customers that are not archived
	Furthest int64 // of those, µs
	// Closed are, of those, counters ahead of the clock no further than to the end of a billing
	// period that was closed early: nothing may be booked before it, so that they stay there.
	Closed  int
	Brought int // back
	Left    int // that somebody held, or that a change overtook each time: to be tried again
}

const (
	// aheadTries bounds how often a counter is tried that somebody holds, aheadPause is in between.
	aheadTries = 5
	aheadPause = 200 * time.Millisecond
	// aheadLimit bounds one transaction.
	aheadLimit = 10 * time.Second
)

// BringBack looks at all counters. A dry run changes nothing.
func (a *Ahead) BringBack(ctx context.Context, dry bool) (report AheadReport, err error) {
	now, err := a.Now(ctx)
	if err != nil {
		return report, err
	}
	err = upkeep.EachAhead(ctx, a.Pool, now+model.MostAhead, func(page []upkeep.ChargedAt) error {
		left := page
		for try := 0; len(left) > 0 && try < aheadTries; try++ {
			if try > 0 {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(aheadPause):
				}
			}
			var err error
			if left, err = a.page(ctx, left, now, dry, &report); err != nil {
				return err
			}
		}
		report.Left += len(left)
		return nil
	})
	return report, err
}

// page brings the counters of a page back, and returns those that are to be tried again.
func (a *Ahead) page(ctx context.Context, page []upkeep.ChargedAt, now int64, dry bool, report *AheadReport) (again []upkeep.ChargedAt, err error) {
	ctx, cancel := context.WithTimeout(ctx, aheadLimit)
	defer cancel()
	keys := make([]model.CounterKey, len(page))
	customers := make([]int64, len(page))
	for i, c := range page {
		keys[i], customers[i] = c.CounterKey, c.Customer
	}
	targets, err := a.Catalog.Targets(ctx, keys)
	if err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		floors, err := lockFloors(ctx, tx, customers)
		if err != nil {
			return err
		}
		var counters []locked.Ahead
		var of []upkeep.ChargedAt
		for i, c := range page {
			floor, free := floors[c.Customer]
			switch {
			case targets[i] == nil || targets[i].Clock != nil: // archived, gone, or on a test clock
			case !free:
				again = append(again, c)
			case c.At-max(now, floor) <= model.MostAhead:
				report.found(c.At - now)
				report.Closed++
			default:
				counters, of = append(counters, locked.Ahead{Target: targets[i], Attribute: c.Attribute, NotBefore: floor}), append(of, c)
			}
		}
		if dry {
			for _, c := range of {
				report.found(c.At - now)
			}
			return nil
		}
		for i, b := range a.Engine.BringBack(ctx, counters) {
			var stale *model.StaleError
			switch {
			case errors.As(b.Err, &stale) || errors.Is(b.Err, session.ErrBusy):
				again = append(again, of[i])
			case b.Err != nil:
				return b.Err
			case b.Changed:
				report.found(of[i].At - now)
				report.Brought++
			}
		}
		return nil
	})
	return again, err
}

// found counts a counter that is so far ahead, µs.
func (r *AheadReport) found(ahead int64) {
	r.Ahead, r.Furthest = r.Ahead+1, max(r.Furthest, ahead)
}

// lockBilled: the lock keeps a period from being closed meanwhile. floorsOf comes after it, and sees
// what was closed before: who is not billed has no lock.
const (
	lockBilled = `SELECT customer_id FROM open_periods WHERE customer_id = ANY ($1) ORDER BY customer_id FOR SHARE SKIP LOCKED`
	floorsOf   = `
	SELECT i.customer, EXISTS (SELECT FROM open_periods o WHERE o.customer_id = i.customer),
		coalesce((SELECT max(p.end_at) FROM periods p WHERE p.customer_id = i.customer), 0)
	FROM (SELECT DISTINCT unnest($1::bigint[]) AS customer) i`
)

// lockFloors returns for each customer the end of its last closed period, µs, 0 without one. It leaves
// customers out whose billing somebody is at.
func lockFloors(ctx context.Context, tx pgx.Tx, customers []int64) (map[int64]int64, error) {
	rows, _ := tx.Query(ctx, lockBilled, customers)
	mine, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	floors := make(map[int64]int64)
	var customer, end int64
	var billed bool
	rows, _ = tx.Query(ctx, floorsOf, customers)
	_, err = pgx.ForEachRow(rows, []any{&customer, &billed, &end}, func() error {
		if !billed || slices.Contains(mine, customer) {
			floors[customer] = end
		}
		return nil
	})
	return floors, err
}
