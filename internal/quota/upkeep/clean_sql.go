package upkeep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

const (
	// stepKeys is the maximum number of keys that a step passes. stepValues is the maximum number of values'
	// counters that a step reads and judges. If the table was vacuumed, the keys are read from the index alone.
	stepKeys   = 5000
	stepValues = 500
)

// cursor is the position of the walk: after the key of a shard.
type cursor struct {
	shard int16
	after model.CounterKey
}

// PageSQL finds the next keys of values in a shard, and the last key of a full page, which may be the key of a
// customer's own counter. The parameters are $1 the shard, $2–$4 the key after which to continue, $5 the number of
// keys, and $6 the number of values.
const PageSQL = `
SELECT customer, meter, attribute, n
FROM (SELECT customer, meter, attribute, row_number() OVER (ORDER BY customer, meter, attribute) AS n
      FROM (SELECT customer, meter, attribute FROM counters
            WHERE shard = $1 AND (customer, meter, attribute) > ($2, $3, $4)
            ORDER BY customer, meter, attribute LIMIT $5) page) numbered
WHERE attribute <> '' OR n = $5
LIMIT $6`

// page returns the next keys of values in the order of keys, and the start of the next page.
func (c *Cleaner) page(ctx context.Context) (keys []model.CounterKey, next cursor, err error) {
	var k model.CounterKey
	var n int64
	passed, next := 0, c.at
	rows, _ := c.options.Pool.Query(ctx, PageSQL, c.at.shard, c.at.after.Customer, c.at.after.Meter, c.at.after.Attribute, stepKeys, stepValues)
	_, err = pgx.ForEachRow(rows, []any{&k.Customer, &k.Meter, &k.Attribute, &n}, func() error {
		if next.after = k; k.Attribute != "" {
			keys = append(keys, k)
		}
		passed++
		return nil
	})
	if passed < stepValues && n < stepKeys { // the end of the shard
		next = cursor{shard: (c.at.shard + 1) % model.Shards}
	}
	return keys, next, err
}

// value is a counter of an attribute value as it was read. n is the number of its key among the requested keys,
// counted from 1.
type value struct {
	model.Row
	key   model.CounterKey
	n     int64
	total int64 // the total of the charged units; of a level meter: the level
	bad   error // the reason why the counter cannot be read
}

// ValuesSQL reads counters. If a level meter's value belongs to another generation than the own counter, its level
// is 0, see model.LevelTotals. The parameters $1–$4 are the key.
const ValuesSQL = `
SELECT i.n, c.at, c.version, c.change, c.total, array_send(c.state), array_send(c.departed)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT at, version, change, state, departed, CASE WHEN i.meter > 0 OR generation = (
			SELECT CASE generation % 2 WHEN 1 THEN generation END FROM counters
			WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = '') THEN total ELSE 0 END AS total FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c
ORDER BY i.n`

// read reads the counters that exist, in the order of keys.
func (c *Cleaner) read(ctx context.Context, keys []model.CounterKey) (found []value, err error) {
	columns := session.ColumnsOf(keys)
	rows, _ := c.options.Pool.Query(ctx, ValuesSQL, columns.Shard, columns.Customer, columns.Meter, columns.Attribute)
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (v value, err error) {
		var state, departed []byte
		if err = r.Scan(&v.n, &v.At, &v.Version, &v.Change, &v.total, &state, &departed); err == nil {
			v.key = keys[v.n-1]
			v.State, v.bad = session.ReadInts(state)
			if v.bad == nil {
				v.Departed, v.bad = session.ReadIntsOrNone(departed)
			}
		}
		return v, err
	})
}

// DeleteSQL removes counters that have not been charged since they were read. It locks them in the order in which
// hits lock counters. It does not wait for locks, because a counter that a hit has locked is in use. A hit that
// waits for a removed counter finds no row, which is equivalent to an untouched counter. A comparison of the
// version alone would not suffice, because a counter that was removed and created again starts at version 1. The
// parameters are $1–$4 the key, $5 the version, and $6 the instant of the last charge.
const DeleteSQL = `
WITH locked AS MATERIALIZED (
	SELECT i.shard, i.customer, i.meter, i.attribute, i.version, i.at
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[])
	     AS i(shard, customer, meter, attribute, version, at),
	LATERAL (SELECT version, at FROM counters
		WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
		FOR UPDATE SKIP LOCKED) c
	WHERE c.version = i.version AND c.at = i.at
)
DELETE FROM counters c USING locked i
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute
  AND c.attribute <> '' AND c.version = i.version AND c.at = i.at`

func (c *Cleaner) remove(ctx context.Context, idle []value) (int, error) {
	keys := make([]model.CounterKey, len(idle))
	versions, ats := make([]int64, len(idle)), make([]int64, len(idle))
	for i, v := range idle {
		keys[i], versions[i], ats[i] = v.key, v.Version, v.At
	}
	columns := session.ColumnsOf(keys)
	done, err := c.options.Pool.Exec(ctx, c.delete, columns.Shard, columns.Customer, columns.Meter, columns.Attribute, versions, ats)
	return int(done.RowsAffected()), err
}
