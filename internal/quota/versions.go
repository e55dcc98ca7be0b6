package quota

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// versionsSQL reads each counter by its key.
const versionsSQL = `
SELECT coalesce(c.version, 0)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) WITH ORDINALITY AS i(shard, customer, meter, attribute, n)
LEFT JOIN LATERAL (
	SELECT version FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c ON true
ORDER BY n`

// Versions reads the versions of counters with one statement. Each charge increments the version of its counter,
// and a counter without a row has version 0. Pages watch the versions.
func (e *Engine) Versions(ctx context.Context, counters []model.CounterKey) ([]int64, error) {
	shards, customers := make([]int16, len(counters)), make([]int64, len(counters))
	meters, attributes := make([]int32, len(counters)), make([]string, len(counters))
	for i, k := range counters {
		shards[i], customers[i], meters[i], attributes[i] = model.Shard(k.Customer), k.Customer, k.Meter, k.Attribute
	}
	rows, _ := e.options.Pool.Query(ctx, versionsSQL, shards, customers, meters, attributes)
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, session.Unreached(err)
	}
	return versions, nil
}
