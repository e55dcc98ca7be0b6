package upkeep

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Charged names what a customer was charged of a meter. Shard is that of the rows, which go by the
// order of the three.
type Charged struct {
	Shard    int16
	Customer int64
	Meter    int32
}

// BeforeCharged comes before all of them.
var BeforeCharged = Charged{Shard: -1}

// nextCharged steps from key to key: a customer's meter may have years of usage, and millions of
// values of attributes.
const nextCharged = `
	WITH RECURSIVE charged AS (
		SELECT $1::smallint AS shard, $2::bigint AS customer, $3::integer AS meter, 0 AS n
		UNION ALL
		SELECT f.shard, f.customer, f.meter, a.n + 1 FROM charged a, LATERAL (
			SELECT * FROM (
				(SELECT c.shard, c.customer, c.meter FROM counters c
				 WHERE (c.shard, c.customer, c.meter) > (a.shard, a.customer, a.meter) ORDER BY c.shard, c.customer, c.meter LIMIT 1)
				UNION ALL
				(SELECT u.shard, u.customer, u.meter FROM usage u
				 WHERE (u.shard, u.customer, u.meter) > (a.shard, a.customer, a.meter) ORDER BY u.shard, u.customer, u.meter LIMIT 1)
			) e ORDER BY e.shard, e.customer, e.meter LIMIT 1) f
		WHERE a.n < $4
	)
	SELECT shard, customer, meter FROM charged WHERE n > 0 ORDER BY n`

// NextCharged lists at most limit of those that have a counter or usage and follow after one. Those
// of forgotten customers are among them.
func NextCharged(ctx context.Context, tx pgx.Tx, after Charged, limit int) ([]Charged, error) {
	rows, _ := tx.Query(ctx, nextCharged, after.Shard, after.Customer, after.Meter, limit)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Charged])
	if err != nil {
		return nil, fmt.Errorf("list what was charged: %w", err)
	}
	return all, nil
}

// Mismatch is a customer's meter whose numbers differ: units charged in all, and units booked as
// usage, in finished hours and in the running one.
type Mismatch struct {
	Charged
	Units    int64 // charged
	Finished int64
	Running  int64
}

// What every charge adds to a customer's own counter it adds to the usage of an hour, in the
// same row. So the two never differ, nor does either exist without the other. The sums are
// numeric: what is wrong may be large. Of a customer that was forgotten only the usage stays,
// and its counters go a while after it: there is nothing to hold it against.
const chargedIsBooked = `
	SELECT shard, customer, meter, charged, greatest(-9223372036854775807, least(9223372036854775807, finished))::bigint, running FROM (
		SELECT w.shard, w.customer, w.meter, coalesce(c.total, 0) AS charged, coalesce(c.units, 0) AS running, coalesce((
			SELECT sum(u.admitted) FROM usage u WHERE u.shard = w.shard AND u.customer = w.customer AND u.meter = w.meter), 0) AS finished
		FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) AS w (shard, customer, meter)
		LEFT JOIN counters c ON c.shard = w.shard AND c.customer = w.customer AND c.meter = w.meter AND c.attribute = ''
		WHERE EXISTS (SELECT FROM customers k WHERE k.id = w.customer)) both_sides
	WHERE charged <> finished + running`

// Mismatches finds those whose units charged are not those booked. Archived customers count,
// forgotten ones do not. All are compared at the instant of one snapshot.
func Mismatches(ctx context.Context, tx pgx.Tx, keys []Charged) ([]Mismatch, error) {
	shards, customers, meters := make([]int16, len(keys)), make([]int64, len(keys)), make([]int32, len(keys))
	for i, k := range keys {
		shards[i], customers[i], meters[i] = k.Shard, k.Customer, k.Meter
	}
	rows, _ := tx.Query(ctx, chargedIsBooked, shards, customers, meters)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Mismatch, err error) {
		return m, row.Scan(&m.Shard, &m.Customer, &m.Meter, &m.Units, &m.Finished, &m.Running)
	})
	if err != nil {
		return nil, fmt.Errorf("compare what was charged with what was booked: %w", err)
	}
	return all, nil
}
