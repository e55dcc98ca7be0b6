package upkeep

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
)

// overdueSQL finds counters with holds that have expired by PostgreSQL's time. The statement is cheap, because
// there are few open reservations, and each shard has only a part of them. The parameters are $1 the shard, $2
// the instant, and $3 the number of holds.
const overdueSQL = `
SELECT DISTINCT customer, meter, attribute
FROM (SELECT customer, meter, attribute FROM holds WHERE shard = $1 AND expires_at <= $2 LIMIT $3) overdue`

// maxOverdue is the maximum number of holds that one step reads.
const maxOverdue = 500

// expireHolds removes holds that expired a while ago in the walk's shard. These holds have not counted since they
// expired, so their removal only frees space.
func (c *Cleaner) expireHolds(ctx context.Context) error {
	now, err := c.options.Now(ctx)
	if err != nil {
		return err
	}
	rows, _ := c.options.Pool.Query(ctx, overdueSQL, c.at.shard, now-c.idle, maxOverdue)
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[model.CounterKey])
	if err != nil || len(keys) == 0 {
		return err
	}
	targets, err := c.options.Targets(ctx, keys)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if targets[i] == nil {
			continue // the customer is archived, and its counters are cleared elsewhere
		}
		var stale *model.StaleError // a change that this node does not know yet concerns the counter
		if err := c.options.Expire(ctx, targets[i].Alone(key.Attribute)); err != nil && !errors.As(err, &stale) {
			return err
		}
	}
	return nil
}
