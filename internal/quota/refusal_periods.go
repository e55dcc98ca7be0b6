package quota

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
)

// maxRefusals bounds the number of refusal rows that are collected between two writes.
const maxRefusals = 10_000

const minute = int64(60e6)

// minuteKey identifies a minute by its start, within an hour of a customer's meter. An hour may begin within a
// minute.
type minuteKey struct {
	model.HourKey
	minute int64
}

// refusedMinute contains the refused hits of a minute.
type refusedMinute struct {
	units  int64
	limits []limitRefusals

	// The last hit's cost, row and refusing limits. A later hit of the same cost on the same row is refused by
	// the same limits before until.
	target        *model.Target
	cost, version int64
	until         int64
	refusing      uint64
}

// limitRefusals contains the refusals of one limit.
type limitRefusals struct {
	limit       string
	first, last int64 // instants of hits, µs
	units       int64
	admits      int64 // when the last hit would have been admitted, µs; model.Never
}

// count adds a refused hit to each limit that refused it. free is the number of limits that may be added. count
// returns the number of added limits, and whether some limits did not fit.
func (m *refusedMinute) count(d *model.Decision, free int) (added int, over bool) {
	if d.Target == m.target && d.Cost == m.cost && d.OneVersion() == m.version && d.At < m.until {
		for i := range m.limits {
			if m.refusing&(1<<i) != 0 {
				m.limits[i].add(d)
			}
		}
		return 0, false
	}
	m.target, m.cost, m.version, m.until, m.refusing = d.Target, d.Cost, d.OneVersion(), math.MaxInt64, 0
	for i := range d.Target.NumLimits() {
		if !d.RefusedBy(i) {
			continue
		}
		n := m.of(d.Target.LimitAt(i).Name)
		if n == len(m.limits) {
			if added == free || n == maxOfMinute {
				over = true
				continue
			}
			added++
			m.limits = append(m.limits, limitRefusals{limit: d.Target.LimitAt(i).Name, first: d.At})
		}
		l := &m.limits[n]
		l.add(d)
		l.admits = model.Never
		if wait := d.Wait(i); wait != model.Never && wait < math.MaxInt64-d.At {
			l.admits = d.At + wait
			m.until = min(m.until, l.admits)
		}
		m.refusing |= 1 << n
	}
	if over || m.version < 0 {
		m.target = nil // each is looked at again
	}
	return added, over
}

// maxOfMinute is the number of limits that may refuse hits in a minute. A plan has at most 20 limits on a meter
// and may change within the minute.
const maxOfMinute = 64

// of returns the index of a limit, or the length of the list if the limit is not in it.
func (m *refusedMinute) of(limit string) int {
	for n := range m.limits {
		if m.limits[n].limit == limit {
			return n
		}
	}
	return len(m.limits)
}

func (r *limitRefusals) add(d *model.Decision) {
	r.first, r.last = min(r.first, d.At), max(r.last, d.At)
	r.units += min(d.Cost, math.MaxInt64-r.units)
}

// floorMod returns a modulo b, which is never negative.
func floorMod(a, b int64) int64 { return (a%b + b) % b }

// The rows are in the order of their key, so that two nodes never deadlock. A statement contains each row once.
const refuseSQL = `
INSERT INTO refusals AS r (shard, customer, meter, minute, limit_name, first_at, last_at, units, admits_at, written_at)
SELECT shard, customer, meter, minute, limit_name, first_at, last_at, units, nullif(admits_at, -1), $10::bigint
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])
     AS i(shard, customer, meter, minute, limit_name, first_at, last_at, units, admits_at)
ON CONFLICT (shard, customer, meter, minute, limit_name) DO UPDATE SET
	first_at = least(r.first_at, excluded.first_at), last_at = greatest(r.last_at, excluded.last_at),
	units = least(r.units::numeric + excluded.units, 9223372036854775807),
	admits_at = CASE WHEN excluded.last_at >= r.last_at THEN excluded.admits_at ELSE r.admits_at END,
	written_at = greatest(r.written_at, excluded.written_at)`

// refusalRow is a row of the table refusals.
type refusalRow struct {
	minuteKey
	*limitRefusals
}

func (d *denials) writeRefusals(ctx context.Context, rows []refusalRow) error {
	shard, meter, limit := make([]int16, len(rows)), make([]int32, len(rows)), make([]string, len(rows))
	var columns [6][]int64
	var sum int64
	for i, r := range rows {
		shard[i], meter[i], limit[i] = model.Shard(r.Customer), r.Meter, r.limit
		for n, v := range [...]int64{r.Customer, r.minute, r.first, r.last, r.units, r.admits} {
			columns[n] = append(columns[n], v)
		}
		sum += min(r.units, math.MaxInt64-sum)
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	now, err := d.now(ctx)
	if err == nil {
		_, err = d.pool.Exec(ctx, refuseSQL, shard, columns[0], meter, columns[1], limit, columns[2], columns[3], columns[4], columns[5], now)
	}
	if err != nil {
		d.lostRefusals.Add(sum)
	}
	return err
}

// sortedRefusals returns the rows in the order of their key. Two hours may share a minute.
func sortedRefusals(m map[minuteKey]*refusedMinute) []refusalRow {
	var rows []refusalRow
	for key, of := range m {
		for i := range of.limits {
			rows = append(rows, refusalRow{key, &of.limits[i]})
		}
	}
	slices.SortFunc(rows, func(a, b refusalRow) int { return compareRefusals(&a, &b) })
	joined := rows[:0]
	for _, r := range rows {
		if last := len(joined) - 1; last >= 0 && compareRefusals(&joined[last], &r) == 0 {
			joined[last].join(r.limitRefusals)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

func compareRefusals(a, b *refusalRow) int {
	return cmp.Or(model.CompareHours(
		model.HourKey{Customer: a.Customer, Meter: a.Meter, Hour: a.minute}, model.HourKey{Customer: b.Customer, Meter: b.Meter, Hour: b.minute},
	), cmp.Compare(a.limit, b.limit))
}

// join adds another row of the same limit and minute.
func (r *limitRefusals) join(other *limitRefusals) {
	if other.last >= r.last {
		r.admits = other.admits
	}
	r.first, r.last = min(r.first, other.first), max(r.last, other.last)
	r.units += min(other.units, math.MaxInt64-r.units)
}

// RefusalPeriod is a period in which a limit refused hits in every minute.
type RefusalPeriod struct {
	Limit    string
	Meter    int32
	From, To int64 // the first and the last hit that it refused, µs
	Units    int64 // that were refused, up to 2⁶³−1
	// Admits is the instant at which the last of the hits would have been admitted, µs, if nothing else had
	// happened. Nil means never.
	Admits *int64
}

// RefusalFilter selects refusal periods of a customer.
type RefusalFilter struct {
	Customer int64
	Meter    int32          // 0: of all meters
	From, To int64          // hits in [From, To), µs
	After    *RefusalPeriod // those after it in the list; nil: from the start
	Most     int
}

// Consecutive minutes of one limit have the same difference between their start and their place in the list. The
// parameters are $1–$2 shard and customer, $3 meter, $4–$5 the hits, $6–$8 the position, and $9 the number of
// rows.
const refusalPeriodsSQL = `
SELECT limit_name, meter, min(first_at) AS from_at, max(last_at), least(sum(units), 9223372036854775807)::bigint,
	(array_agg(admits_at ORDER BY minute DESC))[1]
FROM (
	SELECT *, minute - 60000000 * row_number() OVER (PARTITION BY meter, limit_name ORDER BY minute) AS period
	FROM refusals WHERE shard = $1 AND customer = $2 AND ($3 = 0 OR meter = $3) AND last_at >= $4 AND first_at < $5) m
GROUP BY limit_name, meter, period
HAVING (-min(first_at), meter, limit_name) > (-$6::bigint, $7::integer, $8::text)
ORDER BY from_at DESC, meter, limit_name LIMIT $9`

// RefusalPeriods returns the periods in which a customer's limits refused hits, the newest first.
func (e *Engine) RefusalPeriods(ctx context.Context, f RefusalFilter) ([]RefusalPeriod, error) {
	after := RefusalPeriod{From: math.MaxInt64}
	if f.After != nil {
		after = *f.After
	}
	return collect(ctx, e.options.Pool, e.readTries, pgx.RowToStructByPos[RefusalPeriod], refusalPeriodsSQL,
		model.Shard(f.Customer), f.Customer, f.Meter, f.From, f.To, after.From, after.Meter, after.Limit, f.Most)
}
