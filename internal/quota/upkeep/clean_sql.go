package upkeep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

const (
	// stepKeys is how many keys a step passes at most, and stepValues how many counters of
	// values it reads and judges at most. The first are read from the index alone where the
	// table was vacuumed.
	stepKeys   = 5000
	stepValues = 500
)

// cursor is where the walk has come to: after the key of a shard.
type cursor struct {
	shard int16
	after model.CounterKey
}

// PageSQL finds the next values' keys of a shard, and the last key of a whole page, which
// may be a customer's own. $1 shard, $2–$4 the key to go on after, $5 keys, $6 values.
const PageSQL = `
SELECT customer, meter, attribute, n
FROM (SELECT customer, meter, attribute, row_number() OVER (ORDER BY customer, meter, attribute) AS n
      FROM (SELECT customer, meter, attribute FROM counters
            WHERE shard = $1 AND (customer, meter, attribute) > ($2, $3, $4)
            ORDER BY customer, meter, attribute LIMIT $5) page) numbered
WHERE attribute <> '' OR n = $5
LIMIT $6`

// page returns the next values' keys in key order, and where the next page begins.
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
	if passed < stepValues && n < stepKeys { // the shard's end
		next = cursor{shard: (c.at.shard + 1) % model.Shards}
	}
	return keys, next, err
}

// value is a counter of an attribute's value as it was read; n is its place in the keys
// that were asked for, from 1 on.
type value struct {
	model.Row
	key   model.CounterKey
	n     int64
	total int64 // charged in all; of a level meter what is held
	bad   error // why it cannot be read
}

// ValuesSQL reads counters. A level meter's value of another generation than the own counter's holds
// nothing, see model.LevelTotals. $1–$4 key.
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

// read reads those of the counters that are there, in key order.
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

// DeleteSQL removes counters that nobody has charged since they were read. It locks them
// in the order in which hits do, and waits for none: one that a hit holds is in use. A
// hit that waits for one of them meanwhile finds it gone, which is as good as untouched.
// The version alone would not do: a counter that went and came back begins at 1 again.
// $1–$4 key, $5 version, $6 instant of the last charge.
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
