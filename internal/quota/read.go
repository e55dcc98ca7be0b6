package quota

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Standing is what a target's counters say at one instant, and its running hour.
type Standing struct {
	Decision          // of cost 0: its views say used, remaining and reset
	Hour, Units int64 // start of the running hour (µs) and what was admitted in it
}

// Look judges a hit on what is stored and charges nothing (dry run, cost 0).
func (e *Engine) Look(ctx context.Context, t *Target, cost int64) (Decision, error) {
	s, err := e.read(ctx, []*Target{t}, cost)
	if err != nil {
		return Decision{}, err
	}
	return s[0].Decision, nil
}

// Standings reads the counters of several targets in one snapshot.
func (e *Engine) Standings(ctx context.Context, targets []*Target) ([]Standing, error) {
	return e.read(ctx, targets, 0)
}

// A counter that is not there yet is untouched: version null.
const readSQL = `
SELECT c.state, coalesce(c.at, 0), coalesce(c.version, 0), coalesce(c.change, 0), coalesce(c.hour, 0), coalesce(c.units, 0)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, n)
LEFT JOIN LATERAL (
	SELECT state, at, version, change, hour, units FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c ON true
ORDER BY n`

// stored is a counter as readSQL returns it.
type stored struct {
	row
	hour, units int64
}

func (e *Engine) read(ctx context.Context, targets []*Target, cost int64) ([]Standing, error) {
	now, err := e.options.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var keys keyColumns
	for _, t := range targets {
		for i := range t.Counters {
			keys.add(t.Counters[i].Key)
		}
	}
	result, err := e.options.Pool.Query(ctx, readSQL, keys.shard, keys.customer, keys.meter, keys.attribute)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	all, err := pgx.CollectRows(result, func(r pgx.CollectableRow) (s stored, err error) {
		err = r.Scan(&s.state, &s.at, &s.version, &s.change, &s.hour, &s.units)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	standings := make([]Standing, len(targets))
	for i, t := range targets {
		rows := make([]row, len(t.Counters))
		for c := range rows {
			rows[c] = all[c].row
			if all[c].change > t.Change {
				return nil, &StaleError{Change: all[c].change}
			}
		}
		standings[i] = Standing{judge(t, rows, now, cost), all[0].hour, all[0].units}
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
	rows, err := e.options.Pool.Query(ctx, usageSQL, Shard(customer), customer, meter, from, to, limit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	hours, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UsageHour])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return hours, nil
}
