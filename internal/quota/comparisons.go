package quota

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
)

// Comparisons of plans read the data of many customers at once with the following functions.

const fullestSQL = `
SELECT i.customer
FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer)
CROSS JOIN LATERAL (
	SELECT sum(c.total) AS total
	FROM unnest($3::integer[]) AS m(meter)
	CROSS JOIN LATERAL (
		SELECT total FROM counters
		WHERE shard = i.shard AND customer = i.customer AND meter = m.meter AND attribute = ''
		OFFSET 0) c) t
WHERE t.total > 0
ORDER BY t.total DESC, i.customer LIMIT $4`

// Fullest returns the customers to whom the most units were ever charged on the meters, in descending order.
// Customers without charged units are left out. The statement reads one row for each customer and meter.
func (e *Engine) Fullest(ctx context.Context, customers []int64, meters []int32, most int) ([]int64, error) {
	return collect(ctx, e.options.Pool, e.readTries, pgx.RowTo[int64], fullestSQL, shardsOf(customers), customers, meters, most)
}

func shardsOf(customers []int64) []int16 {
	shards := make([]int16, len(customers))
	for i, customer := range customers {
		shards[i] = model.Shard(customer)
	}
	return shards
}

// LevelChange is the level that a customer holds of a level meter from At on, µs.
type LevelChange struct{ At, Level int64 }

// The parameters are $1–$3 shards, customers and level meters, $4–$5 the time span, and $6 the maximum number of
// rows.
const changesSQL = `
SELECT i.n, l.at, l.level
FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) WITH ORDINALITY AS i(shard, customer, meter, n)
CROSS JOIN LATERAL (
	(SELECT at, level FROM levels WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at < $4 ORDER BY at DESC LIMIT 1)
	UNION ALL
	SELECT at, level FROM levels WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at >= $4 AND at < $5) l
ORDER BY i.n, l.at LIMIT $6`

// LevelChanges returns the changes of customers' levels in [from, to) µs, and the last change before the span.
// The i-th list belongs to customers[i] and meters[i]. For full see Past.
func (e *Engine) LevelChanges(
	ctx context.Context, customers []int64, meters []int32, from, to int64, most int,
) (changes [][]LevelChange, full bool, err error) {
	type row struct{ N, At, Level int64 }
	rows, err := collect(ctx, e.options.Pool, e.readTries, pgx.RowToStructByPos[row], changesSQL, shardsOf(customers), customers, meters, from, to, most+1)
	if err != nil {
		return nil, false, err
	}
	changes = make([][]LevelChange, len(customers))
	for _, r := range rows[:min(len(rows), most)] {
		changes[r.N-1] = append(changes[r.N-1], LevelChange{r.At, r.Level})
	}
	return changes, len(rows) > most, nil
}

// Because this is one statement, an hour that is being moved to the usage table counts once.
const pastSQL = `
SELECT i.n, u.hour, least(sum(u.admitted), 9223372036854775807)::bigint, least(sum(u.denied), 9223372036854775807)::bigint
FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) WITH ORDINALITY AS i(shard, customer, meter, n)
CROSS JOIN LATERAL (
	SELECT hour, admitted, denied FROM usage
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND hour >= $4 AND hour < $5
	UNION ALL
	SELECT hour, units, 0 FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = ''
	  AND units > 0 AND hour >= $4 AND hour < $5) u
GROUP BY i.n, u.hour ORDER BY i.n, u.hour LIMIT $6`

// Past returns the hours of customers and meters that start in [from, to) µs, ascending. The i-th list belongs
// to customers[i] and meters[i]. Adjustments are not included, because no hit requested them. full reports that
// there are more than most hours and that the lists are incomplete.
func (e *Engine) Past(ctx context.Context, customers []int64, meters []int32, from, to int64, most int) (hours [][]UsageHour, full bool, err error) {
	type row struct{ N, Start, Admitted, Denied int64 }
	rows, err := collect(ctx, e.options.Pool, e.readTries, pgx.RowToStructByPos[row], pastSQL, shardsOf(customers), customers, meters, from, to, most+1)
	if err != nil {
		return nil, false, err
	}
	hours = make([][]UsageHour, len(customers))
	for _, r := range rows[:min(len(rows), most)] {
		hours[r.N-1] = append(hours[r.N-1], UsageHour{r.Start, r.Admitted, r.Denied})
	}
	return hours, len(rows) > most, nil
}
