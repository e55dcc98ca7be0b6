package upkeep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// metersOfSQL returns the meters of the customers' own counters. There is one own counter for each meter with
// hits. The parameters $1–$2 are shard and customer. OFFSET 0 keeps the plan at one lookup of the key for each
// customer.
const metersOfSQL = `
SELECT i.customer, c.meter FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
LATERAL (SELECT meter FROM counters WHERE shard = i.shard AND customer = i.customer AND attribute = '' OFFSET 0) c`

// inUseSQL finds customers with counters in use. The state of a counter with an open reservation begins with the
// identity 0. The bucket of an allocation in use contains Stays, even if the plan no longer has the limit. The
// total of a level meter's own counter is the level. The parameters are $1–$3 the key without the attribute, and
// $4 Stays.
const inUseSQL = `
SELECT DISTINCT i.customer
FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) AS i(shard, customer, meter),
LATERAL (SELECT FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter
	  AND CASE WHEN meter < 0 THEN attribute = '' AND total > 0
	      ELSE state[1] = 0 OR $4::bigint = ANY (state) OR $4::bigint = ANY (departed) END LIMIT 1) c`

// InUse returns the customers that have an open reservation, or used units of an allocation limit, which time does
// not replenish. For targets see CleanerOptions. A customer without a target, such as a customer that is being
// changed, is reported as in use.
func InUse(ctx context.Context, from pgx.Tx, customers []int64,
	targets func(context.Context, []model.CounterKey) ([]*model.Target, error),
) (map[int64]bool, error) {
	shards, customers := inLockOrder(customers)
	rows, _ := from.Query(ctx, metersOfSQL, shards, customers)
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k model.CounterKey, err error) {
		return k, row.Scan(&k.Customer, &k.Meter)
	})
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	found, err := targets(ctx, keys)
	if err != nil {
		return nil, err
	}
	inUse := map[int64]bool{}
	var of session.Columns
	for i, k := range keys {
		if found[i] == nil {
			inUse[k.Customer] = true
			continue
		}
		of.Add(k)
	}
	rows, _ = from.Query(ctx, inUseSQL, of.Shard, of.Customer, of.Meter, model.Stays)
	used, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, customer := range used {
		inUse[customer] = true
	}
	return inUse, err
}
