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

// Ahead finds counters with charges in the future, which result from a database clock that was ahead, and
// brings them back to the present. Any number of nodes may serve requests meanwhile. All fields are required.
type Ahead struct {
	Pool    *pgxpool.Pool
	Catalog *catalog.Catalog
	Engine  *quota.Engine
	Now     func(context.Context) (int64, error) // the database's time, µs
}

// AheadReport contains the counts of a run. Counters of customers on test clocks never count as ahead.
type AheadReport struct {
	Ahead    int   // counters ahead, of customers that are not archived
	Furthest int64 // the largest lead among these counters, µs
	// Closed is the number of these counters that are ahead only up to the end of a billing period that was
	// closed early. They stay ahead, because nothing may be booked before that end.
	Closed  int
	Brought int // counters brought back
	Left    int // counters that were locked, or changed at each attempt; run again
}

const (
	// aheadTries is the maximum number of attempts to bring back a counter that is locked. aheadPause is the
	// pause between attempts.
	aheadTries = 5
	aheadPause = 200 * time.Millisecond
	// aheadLimit is the time limit of one transaction.
	aheadLimit = 10 * time.Second
)

// BringBack checks all counters and brings back the counters that are ahead. A dry run changes nothing.
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

// page brings back the counters of one page. It returns the counters that need another attempt.
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
			case targets[i] == nil || targets[i].Clock != nil: // archived, deleted, or on a test clock
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

// found counts a counter that is ahead of the clock by the given time, µs.
func (r *AheadReport) found(ahead int64) {
	r.Ahead, r.Furthest = r.Ahead+1, max(r.Furthest, ahead)
}

// lockBilled locks the customers' open periods, so that no period is closed meanwhile. floorsOf must run
// after lockBilled to see periods that were closed before. Customers without billing have no lock.
const (
	lockBilled = `SELECT customer_id FROM open_periods WHERE customer_id = ANY ($1) ORDER BY customer_id FOR SHARE SKIP LOCKED`
	floorsOf   = `
	SELECT i.customer, EXISTS (SELECT FROM open_periods o WHERE o.customer_id = i.customer),
		coalesce((SELECT max(p.end_at) FROM periods p WHERE p.customer_id = i.customer), 0)
	FROM (SELECT DISTINCT unnest($1::bigint[]) AS customer) i`
)

// lockFloors returns the end of each customer's last closed period, µs, or 0 without a closed period. It
// omits customers whose billing another transaction has locked.
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
