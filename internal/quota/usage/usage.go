// Package usage provides billing and plans with the data of the hot tables by customer, meter and hours: usage,
// adjustments, and the marks on counters at the end of a billing period. Its statements name hot tables only.
// The package does not know the meaning of the data for an invoice.
package usage

import (
	"context"
	"math"
	"math/big"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"quotad/internal/quota/model"
)

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
}

// Span is the usage of one meter in the hours that start in [Start, End), µs.
type Span struct {
	Customer   int64
	Meter      int32
	Start, End int64
}

// Key identifies an adjustment within its customer and meter.
type Key struct {
	Hour int64 // that it concerns, by its start, µs
	ID   [16]byte
}

// Adjustment is a correction of an hour's usage. At is the instant of the adjustment, µs.
type Adjustment struct {
	Key
	At, Cost int64
	Reason   string
}

// ScanAdjustment scans a row with the columns hour, at, cost, reason and id.
func ScanAdjustment(row pgx.CollectableRow) (a Adjustment, err error) {
	return a, row.Scan(&a.Hour, &a.At, &a.Cost, &a.Reason, &a.ID)
}

// Hour contains the admitted units of an hour, which is identified by its start, µs.
type Hour struct{ Start, Admitted int64 }

// Sum contains the units of a span and the adjustments that are included in them.
type Sum struct {
	Units       int64
	Adjustments []Adjustment
}

// PeriodUnits is the SQL expression of the units that a customer used of a meter in a billing period. u has the
// sum (units) and the maximum (fullest) of the finished hours, c.units is the running hour if it belongs to the
// period, and a.cost is the sum of the adjustments. Each of them may be null.
//
// A sum stops at 2⁶³−1, as counters do. If an hour is full, its sum is full, too, whatever adjustments
// subtracted, because the true number of units of a full hour is unknown.
const PeriodUnits = `CASE WHEN 9223372036854775807 IN (u.fullest, c.units) THEN 9223372036854775807
		ELSE least(9223372036854775807, greatest(-9223372036854775807,
			coalesce(u.units, 0) + coalesce(c.units, 0) + coalesce(a.cost, 0))) END::bigint`

// Because this is one statement, it reads one snapshot, and an hour that is being moved counts once. The
// parameters are $1–$5 the spans, and $6–$7 the range that encloses all spans, by which PostgreSQL skips all
// other months.
const sumsSQL = `
SELECT ` + PeriodUnits + `, a.hours, a.keys, a.costs, a.ats, a.reasons
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
	WITH ORDINALITY AS i (shard, customer, meter, start_at, end_at, n)
LEFT JOIN LATERAL (
	SELECT sum(u.admitted) AS units, max(u.admitted) AS fullest FROM usage u
	WHERE u.shard = i.shard AND u.customer = i.customer AND u.meter = i.meter AND u.hour >= i.start_at AND u.hour < i.end_at
	  AND u.hour >= $6 AND u.hour < $7) u ON true
LEFT JOIN LATERAL (
	SELECT c.units FROM counters c
	WHERE c.shard = i.shard AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = ''
	  AND c.hour >= i.start_at AND c.hour < i.end_at OFFSET 0) c ON true
LEFT JOIN LATERAL (
	SELECT sum(a.cost) AS cost, array_agg(a.hour) AS hours, array_agg(a.key) AS keys, array_agg(a.cost) AS costs,
		array_agg(a.at) AS ats, array_agg(a.reason) AS reasons
	FROM adjustments a
	WHERE a.shard = i.shard AND a.customer = i.customer AND a.meter = i.meter AND a.hour >= i.start_at AND a.hour < i.end_at
	  AND a.hour >= $6 AND a.hour < $7) a ON true
ORDER BY i.n`

// Sums reads the usage, the adjustments and the running hour of spans, in their order and in one snapshot.
func Sums(ctx context.Context, q Querier, spans []Span) ([]Sum, error) {
	c := columnsOf(spans)
	from, to := model.Enclose(c.starts, c.ends)
	rows, _ := q.Query(ctx, sumsSQL, c.shards, c.customers, c.meters, c.starts, c.ends, from, to)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Sum, err error) {
		var hours, costs, ats []int64
		var keys []pgtype.UUID
		var reasons []string
		err = row.Scan(&s.Units, &hours, &keys, &costs, &ats, &reasons)
		for i, hour := range hours {
			s.Adjustments = append(s.Adjustments, Adjustment{Key{hour, keys[i].Bytes}, ats[i], costs[i], reasons[i]})
		}
		return s, err
	})
}

// Before returns the sum without some of its adjustments. The result stops at 2⁶³−1 and at −(2⁶³−1).
func (s *Sum) Before(left []Adjustment) int64 {
	units := big.NewInt(s.Units)
	for _, a := range left {
		units.Sub(units, big.NewInt(a.Cost))
	}
	switch {
	case units.IsInt64():
		return max(-math.MaxInt64, units.Int64())
	case units.Sign() < 0:
		return -math.MaxInt64
	}
	return math.MaxInt64
}

const hoursSQL = `
SELECT hour, least(9223372036854775807, sum(admitted))::bigint FROM (
	SELECT hour, admitted FROM usage WHERE shard = $1 AND customer = $2 AND meter = $3 AND hour >= $4 AND hour < $5
	UNION ALL
	SELECT hour, units FROM counters WHERE shard = $1 AND customer = $2 AND meter = $3 AND attribute = '' AND hour >= $4 AND hour < $5) h
WHERE admitted <> 0 AND hour > $6 GROUP BY hour ORDER BY hour LIMIT $7`

// Hours reads at most limit hours of a span with usage, ascending and after a given hour.
func Hours(ctx context.Context, q Querier, s Span, after int64, limit int) ([]Hour, error) {
	rows, _ := q.Query(ctx, hoursSQL, model.Shard(s.Customer), s.Customer, s.Meter, s.Start, s.End, after, limit)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Hour])
}

const adjustmentsSQL = `
SELECT hour, at, cost, reason, key FROM adjustments
WHERE shard = $1 AND customer = $2 AND meter = $3 AND hour >= $4 AND hour < $5
  AND (hour, at, key) > ($6, $7, $8::uuid) ORDER BY hour, at, key LIMIT $9`

// Adjustments reads at most limit adjustments of a span after a given one, in the order of their hours, instants
// and ids. id is a UUID.
func Adjustments(ctx context.Context, q Querier, s Span, hour, at int64, id string, limit int) ([]Adjustment, error) {
	rows, _ := q.Query(ctx, adjustmentsSQL, model.Shard(s.Customer), s.Customer, s.Meter, s.Start, s.End, hour, at, id, limit)
	return pgx.CollectRows(rows, ScanAdjustment)
}

const anySQL = `
SELECT EXISTS (
	SELECT FROM unnest($3::integer[]) AS m (meter), LATERAL (
		SELECT FROM counters k WHERE k.shard = $1 AND k.customer = $2 AND k.meter = m.meter AND k.attribute = '' AND k.hour >= $4 AND k.units > 0
		UNION ALL SELECT FROM usage u WHERE u.shard = $1 AND u.customer = $2 AND u.meter = m.meter AND u.hour >= $4 AND u.admitted > 0
		UNION ALL SELECT FROM adjustments a WHERE a.shard = $1 AND a.customer = $2 AND a.meter = m.meter AND a.hour >= $4
		UNION ALL SELECT FROM counters k WHERE k.shard = $1 AND k.customer = $2 AND k.meter = m.meter AND k.meter < 0 AND k.attribute = '' AND k.total > 0
		UNION ALL SELECT FROM levels l WHERE l.shard = $1 AND l.customer = $2 AND l.meter = m.meter AND l.at >= $4
		OFFSET 0) used)`

// Any reports whether a customer used one of the meters since an instant, had its usage adjusted, or held a
// level.
func Any(ctx context.Context, q Querier, customer int64, meters []int32, since int64) (bool, error) {
	rows, _ := q.Query(ctx, anySQL, model.Shard(customer), customer, meters, since)
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
}

// Archived is the own counter of an archived customer, which has no target, with its newest change.
type Archived struct {
	Customer, Change int64
	Meter            int32
}

const fenceArchivedSQL = `
INSERT INTO counters AS c (shard, customer, meter, attribute, change)
SELECT shard, customer, meter, '', change
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[]) AS w (shard, customer, meter, change)
ORDER BY shard, customer, meter
ON CONFLICT (shard, customer, meter, attribute) DO UPDATE SET change = greatest(c.change, excluded.change)`

// FenceArchived is the fence of archived customers. A charge that was judged before the archiving and arrives
// afterwards finds a row of a newer change. The charge is therefore judged again and finds no customer. The
// archiving itself marks the rows that exist at that time. FenceArchived creates the rows of other meters that
// have a price by now, because a late first charge could otherwise create a row after the invoice.
//
// pool runs this in a separate transaction, because the worker that waits for these rows may be the worker whose
// fence the caller waits for.
func FenceArchived(ctx context.Context, pool Execer, all []Archived) error {
	if len(all) == 0 {
		return nil
	}
	shards, customers, meters, changes := make([]int16, len(all)), make([]int64, len(all)), make([]int32, len(all)), make([]int64, len(all))
	for i, a := range all {
		shards[i], customers[i], meters[i], changes[i] = model.Shard(a.Customer), a.Customer, a.Meter, a.Change
	}
	_, err := pool.Exec(ctx, fenceArchivedSQL, shards, customers, meters, changes)
	return err
}
