package quota

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Standing is how a target stands.
type Standing struct {
	model.Decision               // of cost 0: its views say used, remaining and reset
	PeriodStart, PeriodEnd int64 // the billing period that holds Now, µs, [start, end)
	PeriodUsed             int64 // units admitted in it, the running hour included
	Now                    int64 // the reading of the customer's clock that all of it was judged at, µs
}

// Look judges a hit on what is stored and charges nothing (dry run, cost 0).
func (e *Engine) Look(ctx context.Context, t *model.Target, cost int64) (model.Decision, error) {
	r := make([]queue.Result, 1)
	e.lookAll(ctx, []model.Hit{{Target: t, Cost: cost}}, r)
	return r[0].Decision, r[0].Err
}

// lookAll looks for many hits with one statement.
func (e *Engine) lookAll(ctx context.Context, hits []model.Hit, results []queue.Result) {
	targets := make([]*model.Target, len(hits))
	for i := range hits {
		targets[i] = hits[i].Target
	}
	stored, now, err := e.read(ctx, targets, nil)
	for i, h := range hits {
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i].Decision, results[i].Err = stored[i].judge(h.Target, h.Target.Instant(now), h.Cost)
	}
}

// Standings reads how several targets stand, counters and usage in one snapshot: the
// units of a period are the very ones that the limits were charged with.
func (e *Engine) Standings(ctx context.Context, targets []*model.Target) ([]Standing, error) {
	standings := make([]Standing, len(targets))
	stored, now, err := e.read(ctx, targets, func(i int, now int64) (start, end int64) {
		s := &standings[i]
		s.PeriodStart, s.PeriodEnd = targets[i].Period(targets[i].Instant(now))
		return s.PeriodStart, s.PeriodEnd
	})
	if err != nil {
		return nil, err
	}
	for i, t := range targets {
		s := &standings[i]
		s.PeriodUsed, s.Now = stored[i].used, t.Instant(now)
		if s.Decision, err = stored[i].judge(t, s.Now, 0); err != nil {
			return nil, err
		}
	}
	return standings, nil
}

// A counter that is not there yet is untouched. Sums stop at 2⁶³−1, as the counters do. All
// of it is one statement, and so one snapshot. $1–$4 key, $5–$6 the period whose usage is
// summed, its own hours, those of the usage table and adjustments; an empty one sums
// nothing. The holds are of counters that have any, integers of one after the other: expiry,
// instant, cost, how many limits, and those.
const readSQL = `
SELECT c.state, coalesce(c.at, 0), coalesce(c.version, 0), coalesce(c.change, 0),
       least(9223372036854775807,
         CASE WHEN c.hour >= i.period_start AND c.hour < i.period_end THEN c.units ELSE 0 END
         + CASE WHEN i.attribute = '' AND i.period_start < i.period_end THEN
         (SELECT coalesce(sum(u.admitted), 0) FROM usage u
          WHERE u.shard = i.shard AND u.customer = i.customer AND u.meter = i.meter
            AND u.hour >= i.period_start AND u.hour < i.period_end)
         + (SELECT coalesce(sum(a.cost), 0) FROM adjustments a
          WHERE a.shard = i.shard AND a.customer = i.customer AND a.meter = i.meter
            AND a.hour >= i.period_start AND a.hour < i.period_end) ELSE 0 END)::bigint,
       CASE WHEN c.state[1] = 0 THEN
         (SELECT array_agg(n ORDER BY h.expires_at, h.key, m.place) FROM holds h,
            unnest(ARRAY[h.expires_at, h.at, h.cost, cardinality(h.limits)] || h.limits) WITH ORDINALITY AS m(n, place)
          WHERE h.shard = i.shard AND h.customer = i.customer AND h.meter = i.meter AND h.attribute = i.attribute)
       END
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, period_start, period_end, n)
LEFT JOIN LATERAL (
	SELECT state, at, version, change, hour, units FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c ON true
ORDER BY n`

// stored is a target's counters as readSQL returns them.
type stored struct {
	rows []model.Row
	used int64 // in the period asked for
}

// judge is the decision of the Go model on what is stored. What has expired of holds counts
// no more, whoever looks.
func (s *stored) judge(t *model.Target, now, cost int64) (model.Decision, error) {
	var newest int64
	at := now
	for i := range s.rows {
		newest, at = max(newest, s.rows[i].Change), max(at, s.rows[i].At)
	}
	if newest > t.Change {
		return model.Decision{}, &model.StaleError{Change: newest}
	}
	for i := range s.rows {
		t.Expire(i, &s.rows[i], at)
	}
	return model.Judge(t, s.rows, now, cost), nil
}

// holdsOf takes apart what readSQL says of holds.
func holdsOf(n []int64) (holds []model.Hold) {
	for len(n) >= 4 {
		limits := 4 + n[3]
		holds = append(holds, model.Hold{Expires: n[0], At: n[1], Cost: n[2], Limits: n[4:limits]})
		n = n[limits:]
	}
	return holds
}

// read reads the counters of targets, and what period says of each (nil: nothing).
func (e *Engine) read(ctx context.Context, targets []*model.Target, period func(i int, now int64) (start, end int64)) ([]stored, int64, error) {
	now, err := e.options.Now(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, 0, fmt.Errorf("%w: %w", session.ErrBusy, err)
	}
	if err != nil {
		return nil, 0, session.Unreached(err)
	}
	var keys session.Columns
	var starts, ends []int64
	for i, t := range targets {
		var start, end int64
		if period != nil {
			start, end = period(i, now)
		}
		for c := range t.Counters {
			keys.Add(t.Counters[c].Key)
			starts, ends = append(starts, start), append(ends, end)
		}
	}
	type counter struct {
		model.Row
		used int64
	}
	counters, err := collect(ctx, e, func(r pgx.CollectableRow) (c counter, err error) {
		var holds []int64
		err = r.Scan(&c.State, &c.At, &c.Version, &c.Change, &c.used, &holds)
		c.State, _ = model.Unmarked(c.State)
		c.Holds = holdsOf(holds)
		return c, err
	}, readSQL, keys.Shard, keys.Customer, keys.Meter, keys.Attribute, starts, ends)
	if err != nil {
		return nil, 0, err
	}
	all := make([]stored, len(targets))
	for i, t := range targets {
		for range t.Counters {
			all[i].rows = append(all[i].rows, counters[0].Row)
			all[i].used += counters[0].used
			counters = counters[1:]
		}
	}
	return all, now, nil
}

// UsageHour is one hour, finished or running, of a customer's meter. Admitted is exact,
// denied a statistic; both in units.
type UsageHour struct{ Start, Admitted, Denied int64 }

// One statement, one snapshot: an hour that is being moved counts once.
const usageSQL = `
SELECT hour, least(sum(admitted), 9223372036854775807)::bigint, least(sum(denied), 9223372036854775807)::bigint
FROM (
	SELECT hour, admitted, denied FROM usage
	WHERE shard = $1 AND customer = $2 AND meter = $3 AND hour >= $4 AND hour < $5
	UNION ALL
	SELECT hour, units, 0 FROM counters
	WHERE shard = $1 AND customer = $2 AND meter = $3 AND attribute = ''
	  AND units > 0 AND hour >= $4 AND hour < $5
	UNION ALL
	SELECT hour, cost, 0 FROM adjustments
	WHERE shard = $1 AND customer = $2 AND meter = $3 AND hour >= $4 AND hour < $5
) h
GROUP BY hour ORDER BY hour LIMIT $6`

// Usage returns the hours that start in [from, to) µs, ascending, the running one
// included, at most limit of them; hours in which nothing happened are left out.
func (e *Engine) Usage(ctx context.Context, customer int64, meter int32, from, to int64, limit int) ([]UsageHour, error) {
	return collect(ctx, e, pgx.RowToStructByPos[UsageHour], usageSQL, model.Shard(customer), customer, meter, from, to, limit)
}

// collect runs a query that only reads. After a restart of the server each connection of
// the pool fails once; that is worth another try, and a read may always have one.
// Errors: ErrUnavailable in an outage, ErrNoSession, ErrBusy when statements took too long or
// ctx ended, else ErrInternal.
func collect[T any](ctx context.Context, e *Engine, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	for range e.readTries {
		var rows pgx.Rows
		if rows, err = e.options.Pool.Query(ctx, sql, args...); err == nil {
			all, err = pgx.CollectRows(rows, scan)
		}
		var unreached *pgconn.ConnectError
		if err == nil || ctx.Err() != nil || !postgres.Outage(err) || errors.As(err, &unreached) {
			break
		}
	}
	switch {
	case err == nil:
		return all, nil
	case postgres.Retryable(err), errors.Is(err, context.Canceled), ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", session.ErrBusy, err)
	case session.Hopeless(err):
		return nil, session.Unreached(err)
	}
	return nil, fmt.Errorf("%w: %w", session.ErrInternal, err)
}
