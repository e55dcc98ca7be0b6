package upkeep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// metersOfSQL are the customers' own counters, of which there is one for each meter with
// hits. $1–$2 shard and customer. OFFSET 0 keeps it one look-up of the key for each.
const metersOfSQL = `
SELECT i.customer, c.meter FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
LATERAL (SELECT meter FROM counters WHERE shard = i.shard AND customer = i.customer AND attribute = '' OFFSET 0) c`

// inUseSQL: a counter with an open reservation begins its state with the identity 0. The bucket of an
// allocation in use says that it stays, also that of a limit that the plan has no more. The total of a
// level meter's own counter is what is held. $1–$3 key without attribute, $4 Stays.
const inUseSQL = `
SELECT DISTINCT i.customer
FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) AS i(shard, customer, meter),
LATERAL (SELECT FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter
	  AND CASE WHEN meter < 0 THEN attribute = '' AND total > 0
	      ELSE state[1] = 0 OR $4::bigint = ANY (state) OR $4::bigint = ANY (departed) END LIMIT 1) c`

// InUse returns those of the customers that have units of an allocation limit in use, which
// do not come back by themselves, or an open reservation. targets is as CleanerOptions has
// it; a customer that it does not know, as one that is just being changed, is told as in use.
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
