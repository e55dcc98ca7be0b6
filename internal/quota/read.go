package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
	"quotad/internal/quota/usage"
)

// Standing is the state of a target.
type Standing struct {
	model.Decision               // of cost 0: its views say used, remaining and reset
	PeriodStart, PeriodEnd int64 // the billing period that holds Now, µs, [start, end)
	PeriodUsed             int64 // units admitted in it, the running hour included; of a level meter what is held
	Now                    int64 // the reading of the customer's clock that all of it was judged at, µs
}

// Look judges a hit on the stored counters and charges nothing, as for a dry run or a cost of 0.
func (e *Engine) Look(ctx context.Context, t *model.Target, cost int64) (model.Decision, error) {
	hits, r := []model.Hit{{Target: t, Cost: cost}}, make([]queue.Result, 1)
	e.lookAll(ctx, hits, r)
	barLooks(hits, r)
	return r[0].Decision, r[0].Err
}

// barLooks refuses looks as it would refuse their hits. Other reads continue.
func barLooks(hits []model.Hit, results []queue.Result) {
	for i := range hits {
		if r := &results[i]; r.Err == nil {
			r.Err = hits[i].Target.Barred(r.Decision.At)
		}
	}
}

// lookAll judges many hits with one statement, which reads each target once. When no caller waits any longer, it
// stops.
func (e *Engine) lookAll(ctx context.Context, hits []model.Hit, results []queue.Result) {
	var targets []*model.Target
	place := make(map[*model.Target]int, 1)
	for i := range hits {
		t := hits[i].Target
		if _, known := place[t]; !known {
			place[t] = len(targets)
			targets = append(targets, t)
		}
	}
	stored, now, err := e.read(ctx, nil, targets, nil)
	for i, h := range hits {
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", session.ErrBusy, ctx.Err())
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i].Decision, results[i].Err = stored[place[h.Target]].judge(h.Target, h.Target.Instant(now), h.Cost)
	}
}

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// A View is the database at one instant, for reads that must agree with other reads of that instant.
type View struct {
	From Querier // a transaction whose statements all see the same snapshot
	Now  int64   // PostgreSQL's time, µs
	// The billing period whose units are read, µs, [Start, End). If End is 0, each target's own period is read.
	Start, End int64
}

// StandingsIn reads the states of several targets, with counters and usage in one snapshot, so that the units of
// a period are exactly the units that were charged to the limits. It reads in the given view, or by itself
// without a view.
func (e *Engine) StandingsIn(ctx context.Context, v *View, targets []*model.Target) ([]Standing, error) {
	standings := make([]Standing, len(targets))
	stored, now, err := e.read(ctx, v, targets, func(i int, now int64) (start, end int64) {
		s := &standings[i]
		if s.PeriodStart, s.PeriodEnd = targets[i].Period(targets[i].Instant(now)); v != nil && v.End > 0 {
			s.PeriodStart, s.PeriodEnd = v.Start, v.End
		}
		return s.PeriodStart, s.PeriodEnd
	})
	if err != nil {
		return nil, err
	}
	for i, t := range targets {
		s := &standings[i]
		if ctx.Err() != nil { // nobody waits for the others
			return nil, fmt.Errorf("%w: %w", session.ErrBusy, ctx.Err())
		}
		s.PeriodUsed, s.Now = stored[i].used, t.Instant(now)
		if s.Decision, err = stored[i].judge(t, s.Now, 0); err != nil {
			return nil, err
		}
	}
	return standings, nil
}

// A counter without a row is unused. The statement reads everything in one snapshot. The parameters are $1–$4
// the keys, $5–$6 the period whose usage is summed, and $7–$8 the range that encloses all periods, by which
// PostgreSQL skips all other months. The sum is 0 for an empty period and for the counter of an attribute value.
// Arrays are sent in binary, whatever the pool's query mode. Counters with holds return a binary array for each
// list of limits: the number of limits, the limits, and the expiries, instants and costs of their holds.
const readSQL = `
SELECT array_send(c.state), array_send(c.departed), coalesce(c.at, 0), coalesce(c.version, 0), coalesce(c.change, 0), coalesce(c.total, 0),
       coalesce(c.generation, 0), ` + usage.PeriodUnits + `,
       CASE WHEN c.state[1] = 0 THEN
         (SELECT string_agg(array_send(h.limits || h.expires_at || h.at || h.cost), ''::bytea)
          FROM (SELECT cardinality(limits)::bigint || limits AS limits, array_agg(expires_at) AS expires_at, array_agg(at) AS at,
                  array_agg(cost) AS cost
                FROM holds
                WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
                GROUP BY holds.limits OFFSET 0) h)
       END
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, period_start, period_end, n)
LEFT JOIN LATERAL (
	SELECT state, departed, at, version, change, total, generation,
		CASE WHEN i.attribute = '' AND hour >= i.period_start AND hour < i.period_end THEN units END AS units FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c ON true
LEFT JOIN LATERAL (
	SELECT sum(admitted) AS units, max(admitted) AS fullest FROM usage
	WHERE i.attribute = '' AND i.period_start < i.period_end AND hour >= $7 AND hour < $8
	  AND shard = i.shard AND customer = i.customer AND meter = i.meter AND hour >= i.period_start AND hour < i.period_end) u ON true
LEFT JOIN LATERAL (
	SELECT sum(cost) AS cost FROM adjustments
	WHERE i.attribute = '' AND i.period_start < i.period_end AND hour >= $7 AND hour < $8
	  AND shard = i.shard AND customer = i.customer AND meter = i.meter AND hour >= i.period_start AND hour < i.period_end) a ON true
ORDER BY n`

// stored contains a target's counters as readSQL returns them.
type stored struct {
	rows []model.Row
	used int64 // in the period asked for; the level of a level meter
	bad  error // a row cannot be read
}

// hold sets the held level of the counters of a level meter.
func (s *stored) hold(t *model.Target, totals, generations []int64) {
	if t.Level {
		t.Levels(s.rows, model.LevelTotals(totals, generations))
		s.used = totals[0]
	}
}

// judge returns the Go model's decision on the stored counters. Expired holds do not count, whoever reads them.
func (s *stored) judge(t *model.Target, now, cost int64) (model.Decision, error) {
	var newest int64
	at := now
	for i := range s.rows {
		newest, at = max(newest, s.rows[i].Change), max(at, s.rows[i].At)
	}
	if s.bad != nil {
		return model.Decision{}, s.bad
	}
	if newest > t.AsOf() {
		return model.Decision{}, &model.StaleError{Change: newest}
	}
	if err := t.Over(at); err != nil {
		return model.Decision{}, err
	}
	for i := range s.rows {
		t.Settle(i, &s.rows[i], at)
		t.Expire(i, &s.rows[i], at)
	}
	return model.Judge(t, s.rows, now, cost), nil
}

// readHolds parses the holds that readSQL returns.
func readHolds(raw []byte) (*model.Holds, error) {
	var holds []model.Hold
	for len(raw) > 0 {
		n, others, err := session.NextInts(raw)
		if err != nil {
			return nil, err
		}
		limits := n[1 : 1+n[0] : 1+n[0]]
		of := n[1+n[0]:]
		for i, many := 0, len(of)/3; i < many; i++ {
			holds = append(holds, model.Hold{Expires: of[i], At: of[many+i], Cost: of[2*many+i], Limits: limits})
		}
		raw = others
	}
	return model.NewHolds(holds), nil
}

// now returns PostgreSQL's time, µs.
func (e *Engine) now(ctx context.Context) (int64, error) {
	now, err := e.options.Now(ctx)
	if err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("%w: %w", session.ErrBusy, err)
	}
	if err != nil {
		return 0, session.Unreached(err)
	}
	return now, nil
}

// readCounter is a counter as readSQL returns it.
type readCounter struct {
	model.Row
	total, used int64
	generation  int64 // see model.LevelTotals
	bad         error // why it cannot be read, which is the fault of this counter only
}

func scanCounter(r pgx.CollectableRow) (c readCounter, err error) {
	var state, departed, holds []byte
	if err = r.Scan(&state, &departed, &c.At, &c.Version, &c.Change, &c.total, &c.generation, &c.used, &holds); err != nil {
		return c, err
	}
	if state != nil {
		c.State, err = session.ReadInts(state)
		c.State, _ = model.Unmarked(c.State)
	}
	if err == nil {
		c.Departed, err = session.ReadIntsOrNone(departed)
	}
	if err == nil {
		c.Holds, err = readHolds(holds)
	}
	if err != nil {
		c.bad = fmt.Errorf("%w: %w", model.ErrMalformed, err)
	}
	return c, nil
}

// read reads the counters of targets and, unless period is nil, the usage of the periods that period returns.
func (e *Engine) read(ctx context.Context, v *View, targets []*model.Target, period func(i int, now int64) (start, end int64)) ([]stored, int64, error) {
	from, tries := Querier(e.options.Pool), e.readTries
	var now int64
	var err error
	if v != nil {
		from, tries, now = v.From, 1, v.Now
	} else if now, err = e.now(ctx); err != nil {
		return nil, 0, err
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
		if from, to, capped := t.CapPeriod(); capped { // its usage, beside what is asked for
			keys.Add(t.Counters[0].Key)
			starts, ends = append(starts, from), append(ends, to)
		}
	}
	first, last := model.Enclose(starts, ends)
	counters, err := collect(ctx, from, tries, scanCounter, readSQL, keys.Shard, keys.Customer, keys.Meter, keys.Attribute, starts, ends, first, last)
	if err != nil {
		return nil, 0, err
	}
	all := make([]stored, len(targets))
	newest := int64(-1)
	for i, t := range targets {
		var totals, generations []int64
		for c := range t.Counters {
			totals, generations = append(totals, counters[0].total), append(generations, counters[0].generation)
			if counters[0].Change > t.AsOf() {
				if newest < 0 {
					if newest, err = e.newest(ctx, from, tries); err != nil {
						return nil, 0, err
					}
				}
				counters[0].Change = min(counters[0].Change, newest) // above it, it is of no change
			}
			all[i].rows = append(all[i].rows, counters[0].Row)
			all[i].used += counters[0].used
			if err := cmp.Or(counters[0].bad, t.Check(t.Counters[c].Key.Attribute, &counters[0].Row)); err != nil {
				all[i].bad = e.malformed(t.Counters[c].Key, err)
			}
			counters = counters[1:]
		}
		if t.Capped() {
			if own := &all[i].rows[0]; t.Uncounted(own.State) {
				own.State = t.CountCap(own.State, counters[0].used)
			}
			counters = counters[1:]
		}
		all[i].hold(t, totals, generations)
	}
	return all, now, nil
}

// newest returns the number of the database's newest change.
func (e *Engine) newest(ctx context.Context, from Querier, tries int) (int64, error) {
	all, err := collect(ctx, from, tries, pgx.RowTo[int64], `SELECT number FROM change_number WHERE one`)
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// malformed is the error for a counter whose row cannot be read. The log names the counter.
func (e *Engine) malformed(key model.CounterKey, err error) error {
	e.options.Log.Error("a counter cannot be read", "customer_id", key.Customer, "meter_id", key.Meter, "attribute", key.Attribute, "error", err)
	return fmt.Errorf("%w: %w", session.ErrInternal, err)
}

// UsageHour is one finished or running hour of a customer's meter. Admitted is exact and denied is a statistic;
// both are in units.
type UsageHour struct{ Start, Admitted, Denied int64 }

// Because this is one statement, it reads one snapshot, and an hour that is being moved counts once.
const usageSQL = `
SELECT hour, greatest(-9223372036854775807, least(9223372036854775807, sum(admitted)))::bigint, least(sum(denied), 9223372036854775807)::bigint
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

// Usage returns at most limit hours that start in [from, to) µs, ascending and including the running hour. It
// leaves out hours without usage.
func (e *Engine) Usage(ctx context.Context, customer int64, meter int32, from, to int64, limit int) ([]UsageHour, error) {
	return collect(ctx, e.options.Pool, e.readTries, pgx.RowToStructByPos[UsageHour], usageSQL, model.Shard(customer), customer, meter, from, to, limit)
}

// Archive returns the archived time spans. Read it after the hours that it may explain.
func (e *Engine) Archive(ctx context.Context) (usage.Archive, error) {
	all, err := collect(ctx, e.options.Pool, e.readTries, pgx.RowToStructByPos[usage.Archive], usage.ArchiveSQL)
	if err != nil {
		return usage.Archive{}, err
	}
	return all[0], nil
}

// collect runs a query that only reads. After a restart of the server, each connection of a pool fails once, so
// collect tries again. Errors: ErrUnavailable in an outage, ErrNoSession, ErrBusy if statements took too long or
// ctx ended, else ErrInternal.
func collect[T any](ctx context.Context, from Querier, tries int, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	for range tries {
		var rows pgx.Rows
		if rows, err = from.Query(ctx, sql, args...); err == nil {
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
