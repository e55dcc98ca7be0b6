package upkeep

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
)

// overdueSQL finds counters with holds that are over by PostgreSQL's time: open reservations
// are few, and a shard has its share of them. $1 shard, $2 the instant, $3 how many holds.
const overdueSQL = `
SELECT DISTINCT customer, meter, attribute
FROM (SELECT customer, meter, attribute FROM holds WHERE shard = $1 AND expires_at <= $2 LIMIT $3) overdue`

// maxOverdue bounds the holds that one step looks at.
const maxOverdue = 500

// expireHolds takes the holds off in the walk's shard that expired a while ago. They count
// for nothing since they did; this is for their room.
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
			continue // it is archived, and cleared by others
		}
		var stale *model.StaleError // a newer change than this node knows concerns it
		if err := c.options.Expire(ctx, targets[i].Alone(key.Attribute)); err != nil && !errors.As(err, &stale) {
			return err
		}
	}
	return nil
}
