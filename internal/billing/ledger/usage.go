package ledger

import (
	"context"
	"math"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"quotad/internal/quota"
	"quotad/internal/quota/model"
)

// span names the usage of one meter in a billing period: its hours that start in [start, end).
type span struct {
	customer   int64
	meter      int32
	start, end int64
}

// usage is what a span holds: all its units, and which adjustments are among them.
type usage struct {
	units       int64
	adjustments []adjustment
}

// adjustmentKey names an adjustment, within its customer and meter.
type adjustmentKey struct {
	hour int64
	key  [16]byte
}

type adjustment struct {
	adjustmentKey
	cost int64
}

// One statement, one snapshot: an hour that is being moved counts once.
const usageSums = `
	SELECT ` + quota.PeriodUnits + `, a.hours, a.keys, a.costs
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
		WITH ORDINALITY AS i (shard, customer, meter, start_at, end_at, n)
	LEFT JOIN LATERAL (
		SELECT sum(u.admitted) AS units, max(u.admitted) AS fullest FROM usage u
		WHERE u.shard = i.shard AND u.customer = i.customer AND u.meter = i.meter AND u.hour >= i.start_at AND u.hour < i.end_at) u ON true
	LEFT JOIN LATERAL (
		SELECT c.units FROM counters c
		WHERE c.shard = i.shard AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = ''
		  AND c.hour >= i.start_at AND c.hour < i.end_at OFFSET 0) c ON true
	LEFT JOIN LATERAL (
		SELECT sum(a.cost) AS cost, array_agg(a.hour) AS hours, array_agg(a.key) AS keys, array_agg(a.cost) AS costs FROM adjustments a
		WHERE a.shard = i.shard AND a.customer = i.customer AND a.meter = i.meter AND a.hour >= i.start_at AND a.hour < i.end_at) a ON true
	ORDER BY i.n`

// used reads what spans hold: usage, adjustments, and the running hour, in the order of spans. What
// is of one span is of one snapshot.
func used(ctx context.Context, q querier, spans []span) ([]usage, error) {
	all := make([]usage, 0, len(spans))
	for some := range slices.Chunk(spans, countersAtOnce) {
		shards := make([]int16, len(some))
		customers, starts, ends := make([]int64, len(some)), make([]int64, len(some)), make([]int64, len(some))
		meters := make([]int32, len(some))
		for i, s := range some {
			shards[i], customers[i], meters[i], starts[i], ends[i] = model.Shard(s.customer), s.customer, s.meter, s.start, s.end
		}
		rows, _ := q.Query(ctx, usageSums, shards, customers, meters, starts, ends)
		var err error
		if all, err = pgx.AppendRows(all, rows, scanUsage); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func scanUsage(row pgx.CollectableRow) (u usage, err error) {
	var hours, costs []int64
	var keys []pgtype.UUID
	err = row.Scan(&u.units, &hours, &keys, &costs)
	for i, hour := range hours {
		u.adjustments = append(u.adjustments, adjustment{adjustmentKey{hour, keys[i].Bytes}, costs[i]})
	}
	return u, err
}

// without are the adjustments but some others.
func (u *usage) without(others []adjustmentKey) []adjustment {
	gone := make(map[adjustmentKey]bool, len(others))
	for _, a := range others {
		gone[a] = true
	}
	return slices.DeleteFunc(slices.Clone(u.adjustments), func(a adjustment) bool { return gone[a.adjustmentKey] })
}

// before is what there would be without some of the adjustments. It stops at 2⁶³−1, on both
// sides of 0.
func (u *usage) before(left []adjustment) int64 {
	units := big.NewInt(u.units)
	for _, a := range left {
		units.Sub(units, big.NewInt(a.cost))
	}
	switch {
	case units.IsInt64():
		return max(-math.MaxInt64, units.Int64())
	case units.Sign() < 0:
		return -math.MaxInt64
	}
	return math.MaxInt64
}
