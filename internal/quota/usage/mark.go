package usage

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/quota/model"
)

// Execer is a pool or a transaction.
type Execer interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
}

// Mark separates a customer's usage before and after a change. A hit that was judged before Change and is
// charged after it is stale and is judged again.
type Mark struct {
	Customer, Change int64
	Now              int64   // µs
	Meters           []int32 // those whose counters are marked
	Make             []bool  // of each meter: a missing row is made, so that none is inserted as it was judged before
}

// Rows are locked in the order of their key. The parameters are $1 shard, $2 customer, $3 change, $4 meters, $5
// whether to create a row, and $6 now.
const markSQL = `
WITH marked AS (
	INSERT INTO counters AS c (shard, customer, meter, attribute, change)
	SELECT $1, $2, m.meter, '', $3 FROM unnest($4::integer[], $5::boolean[]) AS m (meter, make)
	WHERE m.make OR EXISTS (
		SELECT FROM counters o WHERE o.shard = $1 AND o.customer = $2 AND o.meter = m.meter AND o.attribute = '' OFFSET 0)
	ORDER BY m.meter
	ON CONFLICT (shard, customer, meter, attribute) DO UPDATE SET change = greatest(c.change, excluded.change)
	RETURNING c.at, c.hour, c.units)
SELECT coalesce(max(CASE WHEN units > 0 THEN greatest(at, hour) ELSE at END)
	FILTER (WHERE at > $6 OR units > 0 AND greatest(at, hour) >= $6), 0) FROM marked`

// lastHourSQL finds the last hour at or after an instant that has units or an adjustment. If an adjustment was
// made at the instant itself, the statement returns the instant. The parameters are $1 shard, $2 customer, $3
// meters, and $4 the instant.
const lastHourSQL = `
SELECT coalesce(max(h.hour), 0) FROM unnest($3::integer[]) AS m (meter), LATERAL (
	SELECT max(u.hour) AS hour FROM usage u WHERE u.shard = $1 AND u.customer = $2 AND u.meter = m.meter AND u.hour >= $4 AND u.admitted > 0
	UNION ALL SELECT max(greatest(a.hour, $4)) FROM adjustments a
		WHERE a.shard = $1 AND a.customer = $2 AND a.meter = m.meter AND a.hour >= $4 - 3599999999 AND (a.hour >= $4 OR a.at = $4)
	OFFSET 0) h`

// Draw marks the counters. It returns the last instant, Now or later, at which anything was charged, booked or
// adjusted, or the start of that hour. It returns 0 if there is no such instant. The level of a level meter is
// no charge.
func (m *Mark) Draw(ctx context.Context, tx pgx.Tx) (last int64, err error) {
	shard := model.Shard(m.Customer)
	if err = tx.QueryRow(ctx, markSQL, shard, m.Customer, m.Change, m.Meters, m.Make, m.Now).Scan(&last); err != nil {
		return 0, err
	}
	// Adjustments and imports lock the counter's row. Therefore this statement follows the statement that locks
	// the row.
	var hour int64
	if err = tx.QueryRow(ctx, lastHourSQL, shard, m.Customer, m.Meters, m.Now).Scan(&hour); err != nil {
		return 0, err
	}
	return max(last, hour), nil
}
