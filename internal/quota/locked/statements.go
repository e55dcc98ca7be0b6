package locked

import (
	"strings"

	"quotad/internal/quota/session"
)

// The names of the statements of a worker's transaction, in this order. All arrays are in the lock order of
// counters, and receipts are in the order of their keys.
const (
	InsertRows     session.StatementName = "quotad_locked_insert"
	LockRows       session.StatementName = "quotad_locked_lock"
	LockFree       session.StatementName = "quotad_locked_lock_free" // does not wait for rows
	askThere       session.StatementName = "quotad_locked_there"
	ReadNewest     session.StatementName = "quotad_locked_newest"
	ReadTurn       session.StatementName = "quotad_locked_turn"
	FindReceipts   session.StatementName = "quotad_locked_find"
	askHolds       session.StatementName = "quotad_locked_holds"
	askHours       session.StatementName = "quotad_locked_hours"
	saveRows       session.StatementName = "quotad_locked_save"
	MakeValues     session.StatementName = "quotad_locked_make"
	AddUsage       session.StatementName = "quotad_locked_usage"
	SetLevels      session.StatementName = "quotad_locked_levels"
	IssueReceipts  session.StatementName = "quotad_locked_issue_" // followed by the slot
	changeReceipts session.StatementName = "quotad_locked_change_"
	OpenHolds      session.StatementName = "quotad_locked_open"
	CloseHolds     session.StatementName = "quotad_locked_close"
	AddAdjustments session.StatementName = "quotad_locked_adjust"
	alsoAdjusted   session.StatementName = "quotad_locked_also"
	AddAudit       session.StatementName = "quotad_locked_audit"
	AddReached     session.StatementName = "quotad_locked_reached"
)

// ReceiptTables contains the suffixes of the tables of receipts.
var ReceiptTables = [...]string{"0", "1", "2"}

// Statements returns the text of each statement of a session.
func Statements() map[session.StatementName]string {
	all := map[session.StatementName]string{
		InsertRows:     insertSQL,
		LockRows:       lockSQL,
		LockFree:       strings.Replace(lockSQL, "FOR UPDATE", "FOR UPDATE SKIP LOCKED", 1),
		askThere:       thereSQL,
		ReadNewest:     `SELECT number FROM change_number WHERE one`,
		ReadTurn:       `SELECT slot FROM receipt_turn WHERE one`,
		askHolds:       holdsSQL,
		askHours:       hoursSQL,
		saveRows:       saveSQL,
		MakeValues:     makeSQL,
		AddUsage:       usageSQL,
		SetLevels:      levelsSQL,
		OpenHolds:      openSQL,
		CloseHolds:     closeSQL,
		AddAdjustments: adjustSQL,
		AddAudit:       auditSQL,
		AddReached:     reachSQL,
	}
	var find []string
	for _, slot := range ReceiptTables {
		find = append(find, strings.ReplaceAll(findSQL, "SLOT", slot))
		all[IssueReceipts+session.StatementName(slot)] = strings.ReplaceAll(issueSQL, "SLOT", slot)
		all[changeReceipts+session.StatementName(slot)] = strings.ReplaceAll(changeSQL, "SLOT", slot)
	}
	all[FindReceipts] = strings.Join(find, "\nUNION ALL")
	return all
}

// insertSQL inserts the missing own rows of customers before any lock. It is a plain insert of the key that writes
// nothing if the row exists. The parameters $1–$4 are the key.
const insertSQL = `
INSERT INTO counters (shard, customer, meter, attribute)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
ON CONFLICT DO NOTHING`

// lockSQL locks rows and reads them. It returns the rows in their state when they were locked, however long it
// waited. It runs for the customers' own rows first, and again for the rows of values. The rows of values are
// written only under the lock of the own row, so the second snapshot sees all of them. The parameters $1–$4 are
// the key.
const lockSQL = `
SELECT i.n, c.at, c.hour, c.units, c.total, c.version, c.change, coalesce(c.generation, 0), c.state, c.departed
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT at, hour, units, total, version, change, generation, state, departed FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	FOR UPDATE) c`

// thereSQL returns the existing rows. If a row exists and was not locked, another transaction holds its lock. The
// parameters $1–$4 are the key.
const thereSQL = `
SELECT i.n
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute OFFSET 0) c`

// The following statements read data that the locks guard, so they run after the locks. Each statement has its own
// snapshot, which is taken while the locks are held.

// findSQL finds receipts in one of the tables. The parameters are $1–$2 shard and customer, and $3 key.
const findSQL = `
SELECT i.n, SLOT, r.payload, r.at, r.cost, r.returned, r.meter, r.state, r.body
FROM unnest($1::smallint[], $2::bigint[], $3::uuid[]) WITH ORDINALITY AS i(shard, customer, key, n),
LATERAL (SELECT payload, at, cost, returned, meter, state, body FROM receipts_SLOT
	WHERE shard = i.shard AND customer = i.customer AND key = i.key OFFSET 0) r`

// holdsSQL reads the holds of counters. It returns one row for each list of limits, because nearly all holds of a
// counter were charged to the same limits. To send that list with each of 10,000 holds would take most of the
// transaction's time. The parameters $1–$4 are the key.
const holdsSQL = `
SELECT i.n, h.limits, h.expires_at, h.at, h.cost, h.key
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT limits, array_agg(expires_at) AS expires_at, array_agg(at) AS at, array_agg(cost) AS cost, array_agg(key) AS key
	FROM holds
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	GROUP BY limits OFFSET 0) h`

// The parameters are $1–$4 the key of customers' own counters, and $5–$6 the hours. $7 contains the two hours that
// enclose all spans, so that PostgreSQL skips all other months before it opens them.
const hoursSQL = `
SELECT i.n, u.hour, u.admitted, u.adjusted
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[])
     WITH ORDINALITY AS i(shard, customer, meter, attribute, hour_from, hour_to, n),
LATERAL (
	SELECT hour, admitted, 0::bigint AS adjusted FROM usage
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND hour >= i.hour_from AND hour < i.hour_to
	  AND hour >= ($7::bigint[])[1] AND hour < ($7::bigint[])[2] AND admitted > 0
	UNION ALL
	SELECT hour, 0, cost FROM adjustments
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND hour >= i.hour_from AND hour < i.hour_to
	  AND hour >= ($7::bigint[])[1] AND hour < ($7::bigint[])[2]
	OFFSET 0) u`

// The parameters are $1–$4 the key, $5–$10 the columns, and $11–$12 the slices of $13 that are the states. $14–$15
// are the slices of $13 that are buckets of removed limits; 0 and 0 leave these buckets unchanged. $16 is the
// generation, and 0 means null.
const saveSQL = `
UPDATE counters c
SET at = i.at, hour = i.hour, units = i.units, total = i.total, version = i.version, change = i.change, generation = nullif(i.generation, 0),
    state = coalesce(($13::bigint[])[i.state_from:i.state_to], '{}'),
    departed = CASE WHEN i.departed_from = 0 THEN c.departed ELSE nullif(coalesce(($13::bigint[])[i.departed_from:i.departed_to], '{}'), '{}') END
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::integer[], $12::integer[], $14::integer[], $15::integer[], $16::bigint[])
     AS i(shard, customer, meter, attribute, at, hour, units, total, version, change, state_from, state_to, departed_from, departed_to, generation)
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute`

// makeSQL creates rows of values in the state after their first charge. Its parameters are those of saveSQL. The
// rows are created under the lock of the customer's own row, so they do not exist; otherwise the transaction
// fails.
const makeSQL = `
INSERT INTO counters (shard, customer, meter, attribute, at, hour, units, total, version, change, generation, state, departed)
SELECT shard, customer, meter, attribute, at, hour, units, total, version, change, nullif(generation, 0),
       coalesce(($13::bigint[])[state_from:state_to], '{}'),
       CASE WHEN departed_from > 0 THEN nullif(coalesce(($13::bigint[])[departed_from:departed_to], '{}'), '{}') END
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::integer[], $12::integer[], $14::integer[], $15::integer[], $16::bigint[])
     AS i(shard, customer, meter, attribute, at, hour, units, total, version, change, state_from, state_to, departed_from, departed_to, generation)`

// The parameters are $1–$4 shard, customer, meter and hour, and $5 units. Negative units are subtracted.
const usageSQL = `
INSERT INTO usage (shard, customer, meter, hour, admitted)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET
	admitted = least(usage.admitted::numeric + excluded.admitted, 9223372036854775807)`

// If a key exists already, the transaction fails and is retried. This happens only if the same id arrives for two
// meters at once.
const issueSQL = `
INSERT INTO receipts_SLOT (shard, customer, key, payload, at, cost, returned, meter, state, body)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                     $8::integer[], $9::smallint[], $10::bytea[])`

const changeSQL = `
UPDATE receipts_SLOT r SET cost = i.cost, returned = i.returned, state = i.state, body = i.body
FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::smallint[], $7::bytea[])
     AS i(shard, customer, key, cost, returned, state, body)
WHERE r.shard = ANY (ARRAY[i.shard]) AND r.customer = i.customer AND r.key = i.key`

// The parameters are $1–$4 the key of the counter, $5–$8 expiry, instant, cost and key, and $9–$10 the slices of
// $11.
const openSQL = `
INSERT INTO holds (shard, customer, meter, attribute, expires_at, at, cost, key, limits)
SELECT shard, customer, meter, attribute, expires_at, at, cost, key, coalesce(($11::bigint[])[limits_from:limits_to], '{}')
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::uuid[],
            $9::integer[], $10::integer[])
     AS i(shard, customer, meter, attribute, expires_at, at, cost, key, limits_from, limits_to)`

// The parameters are $1–$4 the key of the counter, and $5–$6 expiry and key.
const closeSQL = `
DELETE FROM holds h
USING unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::uuid[])
     AS i(shard, customer, meter, attribute, expires_at, key)
WHERE h.shard = ANY (ARRAY[i.shard]) AND h.customer = i.customer AND h.meter = i.meter AND h.attribute = i.attribute
  AND h.expires_at = i.expires_at AND h.key = i.key`

const adjustSQL = `
INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[], $8::text[])`

const auditSQL = `
INSERT INTO audit (actor, request, action, subject, target, after, customer)
SELECT actor, request, action, subject, target, after::jsonb, customer
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
     AS i(actor, request, action, subject, target, after, customer)`
