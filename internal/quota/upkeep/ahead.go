package upkeep

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/model"
)

// aheadSQL finds the counters of a page of a shard that were charged after an instant, and the last key of a full
// page. The parameters are $1 the shard, $2–$4 the key after which to continue, $5 the number of keys of a page,
// and $6 the instant.
const aheadSQL = `
SELECT customer, meter, attribute, at, n
FROM (SELECT customer, meter, attribute, at, row_number() OVER (ORDER BY customer, meter, attribute) AS n
      FROM (SELECT customer, meter, attribute, at FROM counters
            WHERE shard = $1 AND (customer, meter, attribute) > ($2, $3, $4)
            ORDER BY customer, meter, attribute LIMIT $5) page) numbered
WHERE at > $6 OR n = $5`

// ChargedAt is a counter and the instant of its last charge, µs.
type ChargedAt struct {
	model.CounterKey
	At int64
}

// aheadPage is the number of keys that a statement reads.
const aheadPage = 2000

// EachAhead reads all counters, a page of a shard at a time. For each page, it passes the counters that were
// charged after an instant, µs, to each, in the order of their keys.
func EachAhead(ctx context.Context, pool *pgxpool.Pool, after int64, each func([]ChargedAt) error) error {
	for shard := range int16(model.Shards) {
		for last := (model.CounterKey{}); ; {
			var ahead []ChargedAt
			var c ChargedAt
			var n int64
			more := false
			rows, _ := pool.Query(ctx, aheadSQL, shard, last.Customer, last.Meter, last.Attribute, aheadPage, after)
			_, err := pgx.ForEachRow(rows, []any{&c.Customer, &c.Meter, &c.Attribute, &c.At, &n}, func() error {
				if c.At > after {
					ahead = append(ahead, c)
				}
				if n == aheadPage {
					last, more = c.CounterKey, true
				}
				return nil
			})
			if err == nil && len(ahead) > 0 {
				err = each(ahead)
			}
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}
