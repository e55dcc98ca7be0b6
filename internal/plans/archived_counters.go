package plans

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota"
)

// The rows are locked in the order of their key, as hits lock them, and one that somebody
// holds is left for another time.
const lockArchived = `
	SELECT i.shard, i.customer, c.meter, c.attribute, c.hour, c.units
	FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
	LATERAL (SELECT meter, attribute, hour, units FROM counters
		WHERE shard = i.shard AND customer = i.customer AND (attribute <> '' OR units > 0 OR state <> '{}')
		ORDER BY meter, attribute FOR UPDATE SKIP LOCKED) c
	LIMIT $3`

const clearArchived = `
	UPDATE counters c SET state = '{}', units = 0
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute)
	WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute`

// clear clears some counters of archived customers; more says that there may be others.
func (c *Clearer) clear(ctx context.Context, due []archivedAt) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	customers := make([]int64, len(due))
	for i := range due {
		customers[i] = due[i].ID
	}
	slices.SortFunc(customers, func(a, b int64) int {
		return cmp.Or(cmp.Compare(quota.Shard(a), quota.Shard(b)), cmp.Compare(a, b))
	})
	var own, values, booked counterColumns
	err = pgx.BeginFunc(ctx, c.store.pool, func(tx pgx.Tx) error {
		var shard int16
		var customer, hour, units int64
		var meter int32
		var attribute string
		rows, _ := tx.Query(ctx, lockArchived, shardsOf(customers), customers, archivedRows)
		_, err := pgx.ForEachRow(rows, []any{&shard, &customer, &meter, &attribute, &hour, &units}, func() error {
			if attribute == "" {
				own.add(shard, customer, meter, attribute, hour, units)
			} else {
				values.add(shard, customer, meter, attribute, hour, units)
			}
			if units > 0 {
				booked.add(shard, customer, meter, attribute, hour, units)
			}
			return nil
		})
		if err != nil || len(own.shard)+len(values.shard) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, bookForgotten, booked.shard, booked.customer, booked.meter, booked.hour, booked.units); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, clearArchived, own.shard, own.customer, own.meter, own.attribute); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, deleteForgotten, values.shard, values.customer, values.meter, values.attribute)
		return err
	})
	if err != nil {
		return false, classify(err)
	}
	c.removed.Add(int64(len(values.shard)))
	return len(own.shard)+len(values.shard) == archivedRows, nil
}
