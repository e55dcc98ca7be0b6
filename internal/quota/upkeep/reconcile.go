package upkeep

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/usage"
)

// Charged identifies a customer and a meter with charges. Shard is the shard of the rows, which are in the order
// of the three fields.
type Charged struct {
	Shard    int16
	Customer int64
	Meter    int32
}

// BeforeCharged is the position before all customers and meters.
var BeforeCharged = Charged{Shard: -1}

// nextCharged jumps from key to key within a shard, because a customer's meter may have years of usage and
// millions of values of attributes. The parameters are $1 the shard, $2–$3 the key after which to continue, and $4
// the number of keys.
const nextCharged = `
	WITH RECURSIVE charged AS (
		SELECT $2::bigint AS customer, $3::integer AS meter, 0 AS n
		UNION ALL
		SELECT f.customer, f.meter, a.n + 1 FROM charged a, LATERAL (
			SELECT * FROM (
				(SELECT c.customer, c.meter FROM counters c
				 WHERE c.shard = $1 AND (c.customer, c.meter) > (a.customer, a.meter) ORDER BY c.customer, c.meter LIMIT 1)
				UNION ALL
				(SELECT u.customer, u.meter FROM usage u
				 WHERE u.shard = $1 AND (u.customer, u.meter) > (a.customer, a.meter) ORDER BY u.customer, u.meter LIMIT 1)
				UNION ALL
				(SELECT s.customer, s.meter FROM archived_sums s
				 WHERE s.shard = $1 AND (s.customer, s.meter) > (a.customer, a.meter) ORDER BY s.customer, s.meter LIMIT 1)
			) e ORDER BY e.customer, e.meter LIMIT 1) f
		WHERE a.n < $4
	)
	SELECT $1::smallint, customer, meter FROM charged WHERE n > 0 ORDER BY n`

// nextShard returns the first shard at or after a given shard that has rows, or null if there is none.
const nextShard = `
	SELECT least(
		(SELECT shard FROM counters WHERE shard >= $1 ORDER BY shard, customer, meter LIMIT 1),
		(SELECT shard FROM usage WHERE shard >= $1 ORDER BY shard, customer, meter LIMIT 1),
		(SELECT shard FROM archived_sums WHERE shard >= $1 ORDER BY shard, customer, meter LIMIT 1))`

// NextCharged lists at most limit customers and meters that follow after and have a counter or usage. The result
// includes forgotten customers. NextCharged proceeds from shard to shard.
func NextCharged(ctx context.Context, tx pgx.Tx, after Charged, limit int) (all []Charged, err error) {
	for {
		var shard *int16
		if err := tx.QueryRow(ctx, nextShard, max(0, after.Shard)).Scan(&shard); err != nil {
			return nil, fmt.Errorf("find what was charged: %w", err)
		}
		if shard == nil {
			return all, nil
		}
		if *shard != after.Shard {
			after = Charged{Shard: *shard}
		}
		rows, _ := tx.Query(ctx, nextCharged, after.Shard, after.Customer, after.Meter, limit-len(all))
		if all, err = pgx.AppendRows(all, rows, pgx.RowToStructByPos[Charged]); err != nil {
			return nil, fmt.Errorf("list what was charged: %w", err)
		}
		if len(all) == limit {
			return all, nil
		}
		after = Charged{Shard: after.Shard + 1}
	}
}

// Mismatch is a customer's meter whose numbers differ. The total of the charged units must equal the units booked
// as usage in finished hours, including archived months, and in the running hour.
type Mismatch struct {
	Charged
	Units    int64 // the charged units
	Finished int64
	Running  int64
}

// Every charge adds the same units to a customer's own counter and to the usage of an hour, in the same row.
// Therefore the two sums never differ, and neither exists without the other. The sums are numeric, because wrong
// values may be large. The charges of a level meter are its changes, whose sum is the last of its levels.
const chargedIsBooked = `
	SELECT shard, customer, meter, charged, greatest(-9223372036854775807, least(9223372036854775807, finished))::bigint, running FROM (
		SELECT w.shard, w.customer, w.meter, coalesce(c.total, 0) AS charged, coalesce(c.units, 0) AS running, coalesce(CASE WHEN w.meter < 0 THEN (
			SELECT l.level FROM levels l WHERE l.shard = w.shard AND l.customer = w.customer AND l.meter = w.meter ORDER BY l.at DESC LIMIT 1) ELSE (
			SELECT sum(u.admitted) FROM usage u WHERE u.shard = w.shard AND u.customer = w.customer AND u.meter = w.meter) END, 0) + coalesce((
			SELECT s.units FROM archived_sums s WHERE s.shard = w.shard AND s.customer = w.customer AND s.meter = w.meter), 0) AS finished
		FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) AS w (shard, customer, meter)
		LEFT JOIN counters c ON c.shard = w.shard AND c.customer = w.customer AND c.meter = w.meter AND c.attribute = '') both_sides
	WHERE charged <> finished + running`

// The sum of the values of a level meter's attribute equals the total of the empty value's counter, and does not
// exceed the level of the meter. See model.LevelTotals.
const valuesAddUp = `
	SELECT w.shard, w.customer, w.meter, v.together, greatest(-9223372036854775807, least(9223372036854775807, v.each))::bigint, o.total
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) AS w (shard, customer, meter)
	JOIN counters o ON o.shard = w.shard AND o.customer = w.customer AND o.meter = w.meter AND o.attribute = ''
	CROSS JOIN LATERAL (
		SELECT coalesce(sum(total) FILTER (WHERE strpos(attribute, '=') < length(attribute)), 0) AS each,
			coalesce(max(total) FILTER (WHERE strpos(attribute, '=') = length(attribute)), 0) AS together
		FROM counters
		WHERE shard = w.shard AND customer = w.customer AND meter = w.meter AND attribute <> '' AND generation = o.generation) v
	WHERE w.meter < 0 AND o.generation % 2 = 1 AND (v.each <> v.together OR v.together > o.total)`

// Misheld is a customer's level meter whose values do not add up.
type Misheld struct {
	Charged
	Together int64 // the sum of the values according to the counter of their sum
	Each     int64 // the sum of the values' own counters
	Level    int64 // the level of the meter
}

// MisheldValues finds level meters whose values do not add up. It reads all data in one snapshot.
func MisheldValues(ctx context.Context, tx pgx.Tx, keys []Charged) ([]Misheld, error) {
	shards, customers, meters := columnsOf(keys)
	rows, _ := tx.Query(ctx, valuesAddUp, shards, customers, meters)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Misheld, err error) {
		return m, row.Scan(&m.Shard, &m.Customer, &m.Meter, &m.Together, &m.Each, &m.Level)
	})
	if err != nil {
		return nil, fmt.Errorf("add up what the values of level meters hold: %w", err)
	}
	return all, nil
}

// columnsOf returns keys in the form that statements require.
func columnsOf(keys []Charged) (shards []int16, customers []int64, meters []int32) {
	for _, k := range keys {
		shards, customers, meters = append(shards, k.Shard), append(customers, k.Customer), append(meters, k.Meter)
	}
	return shards, customers, meters
}

// Mismatches finds customers and meters whose charged units differ from the booked units. It compares them in one
// snapshot. The result includes forgotten customers, of whom only the usage stays.
func Mismatches(ctx context.Context, tx pgx.Tx, keys []Charged) ([]Mismatch, error) {
	shards, customers, meters := columnsOf(keys)
	rows, _ := tx.Query(ctx, chargedIsBooked, shards, customers, meters)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Mismatch, err error) {
		return m, row.Scan(&m.Shard, &m.Customer, &m.Meter, &m.Units, &m.Finished, &m.Running)
	})
	if err != nil {
		return nil, fmt.Errorf("compare what was charged with what was booked: %w", err)
	}
	return all, nil
}

// A cap's bucket has the identity 1. Because the level of another bucket may be 1, too, Go code verifies the
// states.
const selectStates = `
	SELECT w.shard, w.customer, w.meter, c.state
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[]) AS w (shard, customer, meter)
	JOIN counters c ON c.shard = w.shard AND c.customer = w.customer AND c.meter = w.meter AND c.attribute = ''
	WHERE w.meter > 0 AND 1 = ANY (c.state)`

// Every booking of units in an hour of the period changes the bucket in the same transaction. No unit is booked
// after the running hour, so the query needs no end.
const selectBooked = `
	SELECT n, greatest(-9223372036854775807, least(9223372036854775807, coalesce((
			SELECT sum(u.admitted) FROM usage u
			WHERE u.shard = w.shard AND u.customer = w.customer AND u.meter = w.meter AND u.hour >= w.start), 0) + coalesce((
			SELECT sum(a.cost) FROM adjustments a
			WHERE a.shard = w.shard AND a.customer = w.customer AND a.meter = w.meter AND a.hour >= w.start), 0) + coalesce((
			SELECT c.units FROM counters c
			WHERE c.shard = w.shard AND c.customer = w.customer AND c.meter = w.meter AND c.attribute = '' AND c.hour >= w.start), 0)))::bigint
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[]) WITH ORDINALITY AS w (shard, customer, meter, start, n)`

// Miscount is a customer's meter whose cap counts other units than the units booked in its period.
type Miscount struct {
	Charged
	Start   int64 // the start of the period, µs
	Counted int64
	Booked  int64 // the units booked by usage and adjustments
}

// Miscounts finds caps with wrong counts. It reads all data in one snapshot. It leaves out a cap whose period
// began in archived months, because the cap's customer has had no hit since then.
func Miscounts(ctx context.Context, tx pgx.Tx, keys []Charged) (wrong []Miscount, err error) {
	shards, customers, meters := columnsOf(keys)
	var all []Miscount
	var k Charged
	var state []int64
	rows, _ := tx.Query(ctx, selectStates, shards, customers, meters)
	_, err = pgx.ForEachRow(rows, []any{&k.Shard, &k.Customer, &k.Meter, &state}, func() error {
		if counted, start, is := model.CapIn(state); is {
			all = append(all, Miscount{Charged: k, Start: start, Counted: counted})
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	capped, starts := make([]Charged, len(all)), make([]int64, len(all))
	for i, m := range all {
		capped[i], starts[i] = m.Charged, m.Start
	}
	shards, customers, meters = columnsOf(capped)
	var n, booked int64
	rows, _ = tx.Query(ctx, selectBooked, shards, customers, meters, starts)
	if _, err = pgx.ForEachRow(rows, []any{&n, &booked}, func() error {
		all[n-1].Booked = booked
		return nil
	}); err != nil {
		return nil, fmt.Errorf("sum what caps count: %w", err)
	}
	archive, err := usage.ReadArchive(ctx, tx)
	for _, m := range all {
		if m.Counted != model.Within(m.Booked) && m.Start >= archive.Before {
			wrong = append(wrong, m)
		}
	}
	return wrong, err
}
