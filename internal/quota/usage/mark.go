package usage

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/quota/model"
)

// Execer is a pool, or a transaction.
type Execer interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
}

// Mark draws a line through a customer's usage. A hit that was judged before Change, and is charged
// after it, is found to be stale and judged again.
type Mark struct {
	Customer, Change int64
	Now              int64   // µs
	Meters           []int32 // those whose counters are marked
	Make             []bool  // of each meter: a missing row is made, so that none is inserted as it was judged before
}

// Rows are taken in the order of their key. $1 shard, $2 customer, $3 change, $4 meters, $5 whether
// to make a row, $6 now.
const markSQL = `
WITH marked AS (
	INSERT INTO counters AS c (shard, customer, meter, attribute, change)
	SELECT $1, $2, m.meter, '', $3 FROM unnest($4::integer[], $5::boolean[]) AS m (meter, make)
	WHERE m.make OR EXISTS (
		SELECT FROM counters o WHERE o.shard = $1 AND o.customer = $2 AND o.meter = m.meter AND o.attribute = '' OFFSET 0)
	ORDER BY m.meter
	ON CONFLICT (shard, customer, meter, attribute) DO UPDATE SET change = greatest(c.change, excluded.change)
	RETURNING c.at, c.hour, c.units)
SELECT coalesce(max(at) FILTER (WHERE at > $6), 0), coalesce(max(at) FILTER (WHERE at > $6 OR hour >= $6 AND units > 0), 0) FROM marked`

// Draw marks the counters. It returns the last charge after Now, and the last one in an hour that
// starts at Now or later; 0 where there is none.
func (m *Mark) Draw(ctx context.Context, tx pgx.Tx) (later, last int64, err error) {
	err = tx.QueryRow(ctx, markSQL, model.Shard(m.Customer), m.Customer, m.Change, m.Meters, m.Make, m.Now).Scan(&later, &last)
	return later, last, err
}

// A level stops at 2⁶²−1. $1 shard, $2 customer, $3 meter, $4 hour, $5 identities of buckets.
const countHourSQL = `
UPDATE counters c SET state = c.state || (
	SELECT array_agg(b.value ORDER BY w.n, b.place)
	FROM unnest($5::bigint[]) WITH ORDINALITY AS w (bucket, n),
	LATERAL (VALUES (1, w.bucket), (2, least(c.units, (1::bigint << 62) - 1)), (3, 1)) b (place, value))
WHERE c.shard = $1 AND c.customer = $2 AND c.meter = $3 AND c.attribute = '' AND c.hour = $4 AND c.units > 0`

// CountHour adds buckets, by their identities, to a customer's own counter. Each has the units of
// the hour that begins at an instant.
func CountHour(ctx context.Context, q Execer, customer int64, meter int32, hour int64, buckets []int64) error {
	_, err := q.Exec(ctx, countHourSQL, model.Shard(customer), customer, meter, hour, buckets)
	return err
}
