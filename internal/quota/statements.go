package quota

// The statements of the hot path. All arrays are in the lock order: ascending by shard,
// customer, meter, attribute. Each counter is reached by one look-up of its key per array
// element, so that no statistics can change the plan; there is no clock and no volatile
// function in them.

// What the charging statement says of a group instead of a run (0 or more hits charged).
const (
	runMissing   = -1 // a counter's row is not there yet
	runStale     = -2 // a row was judged under a newer change number
	runHourOver  = -3 // the row's hour is another: its units go to usage first
	runWindowEnd = -4 // the group's instant is past what the parameters hold for
)

// chargeSQL locks the rows of each group of hits on the same counters, steps their state,
// and charges the longest run of the group's costs, from the first on, that fits every
// limit of every row. A group that the parameters do not fit is handed back untouched.
// A row judged under a newer change number than it knows remembers it, charged or not.
//
// Parameters, one element a counter: $1–$4 key, $5 group, $6 now, $7 the first instant
// the limits' integers no longer hold for, $8 change number, $9 start of the running hour
// (0 where no usage is booked), $10–$11 and $12–$13 the slices of $14 (limits, see
// quotad_step_v1) and of $15 (running sums of the group's costs).
const chargeSQL = `
WITH locked AS MATERIALIZED (
	SELECT i.*, c.state, c.at, c.booked, c.units, c.total, c.version, c.judged
	FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::integer[],
	            $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
	            $10::integer[], $11::integer[], $12::integer[], $13::integer[])
	     WITH ORDINALITY AS i(shard, customer, meter, attribute, hits, now, until, change, hour,
	                          limit_from, limit_to, sum_from, sum_to, n)
	LEFT JOIN LATERAL (
		SELECT state, at, hour AS booked, units, total, version, change AS judged
		FROM counters
		WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
		FOR UPDATE) c ON true
), timed AS (
	SELECT *, greatest(now, max(at) OVER together) AS instant, count(*) OVER together AS rows,
	       count(version) OVER together AS found,
	       bool_or(judged > change) OVER together AS stale,
	       bool_or(hour <> booked AND units > 0) OVER together AS hour_over
	FROM locked
	WINDOW together AS (PARTITION BY hits)
), stepped AS (
	SELECT *,
	       CASE WHEN found < rows THEN -1
	            WHEN stale THEN -2
	            WHEN hour_over AND instant < until THEN -3
	            WHEN instant >= until THEN -4
	       END AS back,
	       CASE WHEN found = rows AND NOT stale AND NOT hour_over AND instant < until THEN
	            quotad_step_v1(state, at, instant, ($14::bigint[])[limit_from:limit_to], ($15::bigint[])[sum_from:sum_to])
	       END AS step
	FROM timed
), granted AS MATERIALIZED (
	SELECT *, coalesce(back, min(step[1]) OVER (PARTITION BY hits)) AS run
	FROM stepped
), charged AS (
	UPDATE counters c
	SET state = CASE WHEN g.run = 0 THEN g.state
	                 WHEN g.run = g.step[1] THEN g.step[2:]
	                 ELSE (quotad_step_v1(g.state, g.at, g.instant, ($14::bigint[])[limit_from:limit_to], ($15::bigint[])[sum_from:sum_from + run::integer - 1]))[2:]
	            END,
	    at      = CASE WHEN g.run = 0 THEN g.at ELSE g.instant END,
	    hour    = CASE WHEN g.run = 0 THEN g.booked ELSE g.hour END,
	    units   = g.units + CASE WHEN g.run = 0 OR g.hour = 0 THEN 0 ELSE ($15::bigint[])[sum_from + run::integer - 1] END,
	    total   = g.total + CASE WHEN g.run = 0 THEN 0 ELSE ($15::bigint[])[sum_from + run::integer - 1] END,
	    version = g.version + g.run,
	    change  = g.change
	FROM granted g
	WHERE c.shard = g.shard AND c.customer = g.customer AND c.meter = g.meter AND c.attribute = g.attribute
	  AND g.run >= 0 AND (g.run > 0 OR g.judged < g.change)
	RETURNING g.n, g.run, g.instant, c.at, c.version, c.change, c.state
)
SELECT n, run, instant, at, version, change, state FROM charged
UNION ALL
SELECT n, run, instant, at, version, judged, state FROM granted WHERE run < 0 OR run = 0 AND judged >= change`

// insertSQL adds the counters' rows that are not there yet. A plain insert of the key
// that writes nothing when the row exists. $1–$4 key.
const insertSQL = `
INSERT INTO counters (shard, customer, meter, attribute)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
ON CONFLICT DO NOTHING`

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
ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET admitted = usage.admitted + excluded.admitted`

const clearSQL = `
UPDATE counters c SET units = 0, hour = i.hour
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[]) AS i(shard, customer, meter, attribute, hour)
WHERE c.shard = i.shard AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute
  AND c.units > 0 AND c.hour <> i.hour`
