package quota

// The statements of the hot path. All arrays are in the lock order: ascending by shard,
// customer, meter, attribute. Each counter is reached by one look-up of its key per array
// element (in placedSQL, of its place), so that no statistics can change the plan; there is no clock and no volatile
// function in them. An UPDATE names the shard by = ANY, not by =: a plain equality of the
// index's first column is fit for a merge join, for the sake of which PostgreSQL also
// weighs a scan of the whole index, takes it where the table had a row or two when it was
// analyzed, and keeps that plan while the table grows.

// What the charging statement says of a group instead of a run (0 or more hits charged).
const (
	runMissing   = -1 // a counter's row is not there yet
	runStale     = -2 // a row was judged under a newer change number
	runHourOver  = -3 // the row's hour is another: its units go to usage first
	runWindowEnd = -4 // the group's instant is past what the parameters hold for
	runHeld      = -5 // open reservations hold units of a counter
)

// chargeSQL locks the rows of each group of hits on the same counters, steps their state,
// and charges the longest run of the group's costs, from the first on, that fits every
// limit of every row. A group that the parameters do not fit is handed back untouched.
// A row judged under a newer change number than it knows remembers it, charged or not.
//
// A group of one counter, the usual one, is judged row by row. Only groups of several
// are gathered by windows, which cost half as much again: all rows of a group share its
// instant and the shortest run, and a row that could have granted more steps once more.
// A value's row that is not there yet is judged as untouched: it is made for a hit that
// would be admitted, not for all that a flood of values brings. The customer's own must be
// there, as it remembers the change number.
//
// Parameters, one element a counter: $1–$4 key, $5 group, $6 rows of the group, $7 now,
// $8 the first instant the limits' integers no longer hold for, $9 change number, $10
// start of the running hour, $11–$12 and $13–$14 the slices of $15 (limits, see
// quotad_step_v2) and of $16 (running sums of the group's costs), $17 when the limits came
// into force.
const chargeSQL = `
WITH locked AS MATERIALIZED (
	SELECT i.shard, i.customer, i.meter, i.attribute, i.n, i.hits, i.rows, i.now, i.until, i.change, i.hour, i.edited,
	       i.sum_from, i.sum_to, CASE WHEN i.rows > 1 THEN ($15::bigint[])[i.limit_from:i.limit_to] END AS limits,
	       c.state, c.at, c.booked, c.units, c.total, c.version, c.judged,
	       CASE WHEN c.version IS NULL AND i.attribute = '' THEN -1
	            WHEN c.judged > i.change THEN -2
	            WHEN c.at >= i.until THEN -4
	            WHEN c.state[1] = 0 THEN -5
	            WHEN i.hour <> c.booked AND c.units > 0 THEN -3
	            WHEN i.rows = 1 THEN 0
	       END AS back,
	       CASE WHEN i.rows = 1 AND c.judged <= i.change AND c.at < i.until AND (i.hour = c.booked OR c.units = 0)
	               AND c.state[1] IS DISTINCT FROM 0 THEN
	            quotad_step_v2(c.state, c.at, greatest(i.now, c.at), i.edited, ($15::bigint[])[i.limit_from:i.limit_to], ($16::bigint[])[i.sum_from:i.sum_to])
	       END AS step
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::integer[], $6::integer[],
	            $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $17::bigint[],
	            $11::integer[], $12::integer[], $13::integer[], $14::integer[])
	     WITH ORDINALITY AS i(shard, customer, meter, attribute, hits, rows, now, until, change, hour, edited,
	                          limit_from, limit_to, sum_from, sum_to, n)
	LEFT JOIN LATERAL (
		SELECT state, at, hour AS booked, units, total, version, change AS judged
		FROM counters
		WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
		FOR UPDATE) c ON true
), timed AS (
	SELECT *, min(back) OVER together AS all_back, greatest(now, max(at) OVER together) AS instant,
	       bool_or(version IS NULL) OVER together AS missing
	FROM locked WHERE rows > 1
	WINDOW together AS (PARTITION BY hits)
), several AS (
	SELECT *, CASE WHEN all_back < 0 THEN all_back WHEN missing AND fits > 0 THEN -1 ELSE fits END AS run
	FROM (SELECT *, min(least_step[1]) OVER (PARTITION BY hits) AS fits
	      FROM (SELECT *, CASE WHEN all_back IS NULL THEN
	                   quotad_step_v2(coalesce(state, '{}'), coalesce(at, 0), instant, edited, limits, ($16::bigint[])[sum_from:sum_to])
	                   END AS least_step
	            FROM timed) t) t
), granted AS MATERIALIZED (
	SELECT shard, customer, meter, attribute, n, change, hour, state, at, booked, units, total, version, judged,
	       greatest(now, at) AS instant, coalesce(step[1], back) AS run, step,
	       ($16::bigint[])[sum_from + step[1] - 1] AS cost
	FROM locked WHERE rows = 1
	UNION ALL
	SELECT shard, customer, meter, attribute, n, change, hour, state, at, booked, units, total, version, judged,
	       instant, run,
	       CASE WHEN run = least_step[1] THEN least_step
	            WHEN run > 0 THEN quotad_step_v2(state, at, instant, edited, limits, ($16::bigint[])[sum_from:sum_from + run - 1])
	       END,
	       ($16::bigint[])[sum_from + run - 1]
	FROM several
), charged AS (
	UPDATE counters c
	SET state = g.step[3:], at = g.instant, hour = g.hour,
	    units = CASE WHEN g.attribute <> '' THEN 0
	                 WHEN g.units > 9223372036854775807 - g.cost THEN 9223372036854775807
	                 ELSE g.units + g.cost END,
	    total = CASE WHEN g.total > 9223372036854775807 - g.cost THEN 9223372036854775807 ELSE g.total + g.cost END,
	    version = g.version + g.run, change = g.change
	FROM granted g
	WHERE c.shard = ANY (ARRAY[g.shard]) AND c.customer = g.customer AND c.meter = g.meter AND c.attribute = g.attribute
	  AND g.run > 0
	RETURNING g.n, g.run, g.instant, g.step[2] AS spared, c.at, c.version, c.change, c.state
), remembered AS (
	UPDATE counters c SET change = g.change
	FROM granted g
	WHERE c.shard = ANY (ARRAY[g.shard]) AND c.customer = g.customer AND c.meter = g.meter AND c.attribute = g.attribute
	  AND g.run = 0 AND g.judged < g.change
)
SELECT n, run, instant, spared, at, version, change, state FROM charged
UNION ALL
SELECT n, run, instant, 0, at, version, judged, state FROM granted WHERE run <= 0`

// insertSQL adds the counters' rows that are not there yet. A plain insert of the key
// that writes nothing when the row exists. $1–$4 key.
const insertSQL = `
INSERT INTO counters (shard, customer, meter, attribute)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
ON CONFLICT DO NOTHING`

// chargeFirstSQL charges groups on one counter, the customer's own, whose row is not there
// yet: it makes the row as the charge leaves it, in one version and not in two. What is
// refused makes an uncharged row, which remembers the change number. A row that is there
// by now comes back as nothing, and its group is judged again.
//
// Parameters, one element a counter: $1–$4 key, $5 now, $6 change number, $7 start of the
// running hour, $8–$9 and $10–$11 the slices of $12 (limits) and of $13 (running sums).
const chargeFirstSQL = `
WITH stepped AS MATERIALIZED (
	SELECT shard, customer, meter, attribute, now, change, hour, sum_from,
	       quotad_step_v2('{}', 0, now, 0, ($12::bigint[])[limit_from:limit_to], ($13::bigint[])[sum_from:sum_to]) AS step
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
	            $8::integer[], $9::integer[], $10::integer[], $11::integer[])
	     AS i(shard, customer, meter, attribute, now, change, hour, limit_from, limit_to, sum_from, sum_to)
), granted AS MATERIALIZED (
	SELECT *, step[1] > 0 AS charges, coalesce(($13::bigint[])[sum_from + nullif(step[1], 0) - 1], 0) AS cost FROM stepped
)
INSERT INTO counters (shard, customer, meter, attribute, at, hour, units, total, version, change, state)
SELECT shard, customer, meter, attribute, CASE WHEN charges THEN now ELSE 0 END, CASE WHEN charges THEN hour ELSE 0 END,
       cost, cost, step[1], change, CASE WHEN charges THEN step[3:] ELSE '{}' END
FROM granted
ON CONFLICT DO NOTHING
RETURNING customer, meter, attribute, at, version, change, state, ctid`

// lockSQL locks all rows of a batch in their order before several statements touch them,
// which would otherwise each begin again at the lowest key. $1–$4 key.
const lockSQL = `
SELECT count(*)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute),
LATERAL (SELECT FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	FOR UPDATE) c`

// bookSQL adds the units of hours that are over to the usage table, and clearSQL takes
// them off the counters, in the same transaction. The rows are locked already.
// $1–$4 key, $5 start of the running hour.
const bookSQL = `
INSERT INTO usage (shard, customer, meter, hour, admitted)
SELECT i.shard, i.customer, i.meter, c.hour, c.units
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[]) AS i(shard, customer, meter, attribute, hour),
LATERAL (SELECT hour, units FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c
WHERE c.units > 0 AND c.hour <> i.hour
ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET
	admitted = least(usage.admitted::numeric + excluded.admitted, 9223372036854775807)`

const clearSQL = `
UPDATE counters c SET units = 0, hour = i.hour
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[]) AS i(shard, customer, meter, attribute, hour)
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute
  AND c.units > 0 AND c.hour <> i.hour`
