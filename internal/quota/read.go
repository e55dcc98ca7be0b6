package quota

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/calendar"
)

// Standing is how a target stands at one instant.
type Standing struct {
	Decision                     // of cost 0: its views say used, remaining and reset
	PeriodStart, PeriodEnd int64 // the billing period that holds the instant, µs, [start, end)
	PeriodUsed             int64 // units admitted in it, the running hour included
}

// Look judges a hit on what is stored and charges nothing (dry run, cost 0).
func (e *Engine) Look(ctx context.Context, t *Target, cost int64) (Decision, error) {
	s, err := e.read(ctx, []*Target{t}, cost)
	if err != nil {
		return Decision{}, err
	}
	return s[0].Decision, nil
}

// Standings reads how several targets stand, counters and usage in one snapshot: the
// units of a period are the very ones that the limits were charged with.
func (e *Engine) Standings(ctx context.Context, targets []*Target) ([]Standing, error) {
	return e.read(ctx, targets, 0)
}

// A counter that is not there yet is untouched. $1–$4 key, $5–$6 the period whose usage
// is summed, its own hours and those of the usage table.
const readSQL = `
SELECT c.state, coalesce(c.at, 0), coalesce(c.version, 0), coalesce(c.change, 0),
       CASE WHEN c.hour >= i.period_start AND c.hour < i.period_end THEN c.units ELSE 0 END
       + (SELECT coalesce(sum(u.admitted), 0)::bigint FROM usage u
          WHERE i.attribute = '' AND u.shard = i.shard AND u.customer = i.customer AND u.meter = i.meter
            AND u.hour >= i.period_start AND u.hour < i.period_end)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, period_start, period_end, n)
LEFT JOIN LATERAL (
	SELECT state, at, version, change, hour, units FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c ON true
ORDER BY n`

// stored is a counter as readSQL returns it.
type stored struct {
	row
	periodUsed int64
}

func (e *Engine) read(ctx context.Context, targets []*Target, cost int64) ([]Standing, error) {
	now, err := e.options.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var keys keyColumns
	var starts, ends []int64
	standings := make([]Standing, len(targets))
	for i, t := range targets {
		s := &standings[i]
		_, s.PeriodStart, s.PeriodEnd = calendar.Period(t.Anchor, t.Interval, t.Zone, now)
		for c := range t.Counters {
			keys.add(t.Counters[c].Key)
			starts, ends = append(starts, s.PeriodStart), append(ends, s.PeriodEnd)
		}
	}
	scan := func(r pgx.CollectableRow) (s stored, err error) {
		err = r.Scan(&s.state, &s.at, &s.version, &s.change, &s.periodUsed)
		return s, err
	}
	all, err := collect(ctx, e.options.Pool, scan, readSQL, keys.shard, keys.customer, keys.meter, keys.attribute, starts, ends)
	if err != nil {
		return nil, err
	}
	for i, t := range targets {
		rows := make([]row, len(t.Counters))
		var newest int64
		for c := range rows {
			rows[c] = all[c].row
			newest = max(newest, all[c].change)
		}
		if newest > t.Change {
			return nil, &StaleError{Change: newest}
		}
		standings[i].Decision = judge(t, rows, now, cost)
		standings[i].PeriodUsed = all[0].periodUsed
		all = all[len(rows):]
	}
	return standings, nil
}

// UsageHour is one hour, finished or running, of a customer's meter. Admitted is exact,
// denied a statistic; both in units.
type UsageHour struct{ Start, Admitted, Denied int64 }

// One statement, one snapshot: an hour that is being moved counts once.
const usageSQL = `
SELECT hour, sum(admitted)::bigint, sum(denied)::bigint
FROM (
	SELECT hour, admitted, denied FROM usage
	WHERE shard = $1 AND customer = $2 AND meter = $3 AND hour >= $4 AND hour < $5
	UNION ALL
	SELECT hour, units, 0 FROM counters
	WHERE shard = $1 AND customer = $2 AND meter = $3 AND attribute = ''
	  AND units > 0 AND hour >= $4 AND hour < $5
) h
GROUP BY hour ORDER BY hour LIMIT $6`

// Usage returns the hours that start in [from, to) µs, ascending, the running one
// included, at most limit of them; hours in which nothing happened are left out.
func (e *Engine) Usage(ctx context.Context, customer int64, meter int32, from, to int64, limit int) ([]UsageHour, error) {
	return collect(ctx, e.options.Pool, pgx.RowToStructByPos[UsageHour], usageSQL, Shard(customer), customer, meter, from, to, limit)
}

// collect runs a query that only reads. After a restart of the server each connection of
// the pool fails once; that is worth another try, and a read may always have one.
func collect[T any](ctx context.Context, pool *pgxpool.Pool, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	for range 1 + pool.Config().MaxConns {
		var rows pgx.Rows
		if rows, err = pool.Query(ctx, sql, args...); err == nil {
			all, err = pgx.CollectRows(rows, scan)
		}
		var unreached *pgconn.ConnectError
		if err == nil || ctx.Err() != nil || rolledBack(err) || errors.As(err, &unreached) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return all, nil
}
