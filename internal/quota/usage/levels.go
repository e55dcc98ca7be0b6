package usage

import (
	"context"
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
)

// Held describes a customer's level of a level meter in a span: the integral over the span in units · µs, the
// peak, and the last level. The level just before the span counts for the peak only if the level does not change
// at the start of the span. The present level counts as if it stayed.
type Held struct {
	Integral   *big.Int
	Peak, Last int64
}

// The parameters $1–$5 are the spans.
const heldSQL = `
SELECT (coalesce(l.integral + l.level::numeric * (i.end_at - l.at), 0) - coalesce(f.integral + f.level::numeric * (i.start_at - f.at), 0))::text,
       greatest(m.peak, CASE WHEN m.first IS DISTINCT FROM i.start_at THEN f.level END, 0), coalesce(l.level, 0)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
	WITH ORDINALITY AS i (shard, customer, meter, start_at, end_at, n)
LEFT JOIN LATERAL (
	SELECT at, level, integral FROM levels
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at < i.start_at
	ORDER BY at DESC LIMIT 1) f ON true
LEFT JOIN LATERAL (
	SELECT at, level, integral FROM levels
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at < i.end_at
	ORDER BY at DESC LIMIT 1) l ON true
LEFT JOIN LATERAL (
	SELECT max(level) AS peak, min(at) AS first FROM levels
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at >= i.start_at AND at < i.end_at) m ON true
ORDER BY i.n`

// Levels reads the level in each span in one snapshot, and returns the levels in the order of the spans. All
// spans must belong to level meters.
func Levels(ctx context.Context, q Querier, spans []Span) ([]Held, error) {
	columns := columnsOf(spans)
	rows, _ := q.Query(ctx, heldSQL, columns.shards, columns.customers, columns.meters, columns.starts, columns.ends)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Held, err error) {
		var integral string
		if err = row.Scan(&integral, &h.Peak, &h.Last); err != nil {
			return h, err
		}
		var ok bool
		if h.Integral, ok = new(big.Int).SetString(integral, 10); !ok {
			return h, fmt.Errorf("an integral of %q", integral)
		}
		return h, nil
	})
}

// spanColumns are spans as arrays.
type spanColumns struct {
	shards                  []int16
	customers, starts, ends []int64
	meters                  []int32
}

func columnsOf(spans []Span) (c spanColumns) {
	for _, s := range spans {
		c.shards, c.customers, c.meters = append(c.shards, model.Shard(s.Customer)), append(c.customers, s.Customer), append(c.meters, s.Meter)
		c.starts, c.ends = append(c.starts, s.Start), append(c.ends, s.End)
	}
	return c
}
