package plans

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota"
)

const (
	// maxCleared and maxClearedRows bound one transaction of the second step.
	maxCleared     = 200
	maxClearedRows = 5000
	// maxClears bounds one round of them; what is left is for the next one.
	maxClears = 500
)

const forgottenCustomers = `
	SELECT customer FROM forgotten WHERE at < clock_timestamp() - $1::interval
	ORDER BY customer LIMIT $2 FOR UPDATE SKIP LOCKED`

// The rows are locked in the order of their key, as hits lock them, and one that a hit
// holds is left for the next time.
const lockForgotten = `
	SELECT i.shard, i.customer, c.meter, c.attribute, c.hour, c.units
	FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
	LATERAL (SELECT meter, attribute, hour, units FROM counters
		WHERE shard = i.shard AND customer = i.customer ORDER BY meter, attribute
		FOR UPDATE SKIP LOCKED) c
	LIMIT $3`

const bookForgotten = `
	INSERT INTO usage (shard, customer, meter, hour, admitted)
	SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
	ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET
		admitted = least(usage.admitted::numeric + excluded.admitted, 9223372036854775807)`

const deleteForgotten = `
	DELETE FROM counters c
	USING unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute)
	WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute`

const doneForgotten = `
	DELETE FROM forgotten f USING unnest($1::smallint[], $2::bigint[]) AS i(shard, customer)
	WHERE f.customer = i.customer
	  AND NOT EXISTS (SELECT FROM counters k WHERE k.shard = i.shard AND k.customer = i.customer)`

// clearAll is the second step for all who are due.
func (f *Forgetter) clearAll(ctx context.Context) error {
	for range maxClears {
		done, err := f.clear(ctx)
		if err != nil || !done {
			return err
		}
	}
	return nil
}

// clear removes the counters of some forgotten customers, after booking the units of
// their running hours; done says that it got on.
func (f *Forgetter) clear(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, f.store.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, forgottenCustomers, f.grace, maxCleared)
		customers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(customers) == 0 {
			return err
		}
		slices.SortFunc(customers, func(a, b int64) int {
			if by := int(quota.Shard(a)) - int(quota.Shard(b)); by != 0 {
				return by
			}
			return int(min(max(a-b, -1), 1))
		})
		shards := shardsOf(customers)
		cleared, err := clearCounters(ctx, tx, shards, customers)
		if err != nil {
			return err
		}
		gone, err := tx.Exec(ctx, doneForgotten, shards, customers)
		done = cleared > 0 || gone.RowsAffected() > 0
		return err
	})
	return done, classify(err)
}

// clearCounters books and deletes the counters of customers, which are in the order of
// their shards and ids, as far as nobody else holds them.
func clearCounters(ctx context.Context, tx pgx.Tx, shards []int16, customers []int64) (cleared int, err error) {
	var all, booked counterColumns
	var shard int16
	var customer, hour, units int64
	var meter int32
	var attribute string
	rows, _ := tx.Query(ctx, lockForgotten, shards, customers, maxClearedRows)
	_, err = pgx.ForEachRow(rows, []any{&shard, &customer, &meter, &attribute, &hour, &units}, func() error {
		all.add(shard, customer, meter, attribute, hour, units)
		if units > 0 {
			booked.add(shard, customer, meter, attribute, hour, units)
		}
		return nil
	})
	if err != nil || len(all.shard) == 0 {
		return 0, err
	}
	if _, err := tx.Exec(ctx, bookForgotten, booked.shard, booked.customer, booked.meter, booked.hour, booked.units); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, deleteForgotten, all.shard, all.customer, all.meter, all.attribute)
	return len(all.shard), err
}

// counterColumns are counters as parameters of a statement.
type counterColumns struct {
	shard       []int16
	customer    []int64
	meter       []int32
	attribute   []string
	hour, units []int64
}

func (c *counterColumns) add(shard int16, customer int64, meter int32, attribute string, hour, units int64) {
	c.shard, c.customer, c.meter = append(c.shard, shard), append(c.customer, customer), append(c.meter, meter)
	c.attribute, c.hour, c.units = append(c.attribute, attribute), append(c.hour, hour), append(c.units, units)
}
