package upkeep

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// idleSinceSQL finds each customer's counters by the prefix of their key. The parameters are $1–$2 shard and
// customer, and $3 the instant.
const idleSinceSQL = `
SELECT i.customer FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer)
LEFT JOIN LATERAL (SELECT true AS charged FROM counters
	WHERE shard = i.shard AND customer = i.customer AND at > $3 LIMIT 1) c ON true
WHERE c.charged IS NULL`

// IdleSince returns the customers that have no counter charged after since, µs since the Unix epoch. If since is
// negative, it returns the customers that have no counter at all. The rest of the transaction uses the settings of
// ByKey.
func IdleSince(ctx context.Context, tx pgx.Tx, customers []int64, since int64) ([]int64, error) {
	if err := session.ByKey(ctx, tx); err != nil {
		return nil, err
	}
	shards, customers := inLockOrder(customers)
	rows, _ := tx.Query(ctx, idleSinceSQL, shards, customers, since)
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// inLockOrder returns customers in the order of their counters' keys, with their shards.
func inLockOrder(customers []int64) (shards []int16, sorted []int64) {
	sorted = slices.SortedFunc(slices.Values(customers), func(a, b int64) int {
		return model.CompareKeys(model.CounterKey{Customer: a}, model.CounterKey{Customer: b})
	})
	for _, customer := range sorted {
		shards = append(shards, model.Shard(customer))
	}
	return shards, sorted
}

// unclean selects counters that contain more than an account, for customers whose own counters are kept.
const unclean = ` AND (attribute <> '' OR units > 0 OR state <> '{}' OR departed IS NOT NULL)`

// lockAllSQL and lockUncleanSQL lock rows in the order of their key, as hits lock them, and leave out rows that
// another transaction has locked. The parameters are $1–$2 shard and customer, and $3 the number of rows.
const (
	lockAllSQL     = lockSome + lockEnd
	lockUncleanSQL = lockSome + unclean + lockEnd

	lockSome = `
SELECT i.customer, c.meter, c.attribute
FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
LATERAL (SELECT meter, attribute FROM counters
	WHERE shard = i.shard AND customer = i.customer`
	lockEnd = `
	ORDER BY meter, attribute FOR UPDATE SKIP LOCKED) c
LIMIT $3`
)

// anyLeftSQL and uncleanLeftSQL report whether there is a row that lockAllSQL or lockUncleanSQL would select, even
// if the row is locked. The parameters $1–$2 are shard and customer.
const (
	anyLeftSQL     = leftSome + leftEnd
	uncleanLeftSQL = leftSome + unclean + leftEnd

	leftSome = `
SELECT EXISTS (SELECT FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
LATERAL (SELECT FROM counters
	WHERE shard = i.shard AND customer = i.customer`
	leftEnd = ` LIMIT 1) c)`
)

// removeSQL deletes counters, and emptySQL keeps only their account. The rows are already locked, and their units
// are booked. The parameters $1–$4 are the key.
const removeSQL = `
DELETE FROM counters c
USING unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute)
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute`

// dropHoldsSQL deletes the holds of open reservations on counters. The parameters $1–$4 are the key.
const dropHoldsSQL = `
DELETE FROM holds h
USING unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute)
WHERE h.shard = ANY (ARRAY[i.shard]) AND h.customer = i.customer AND h.meter = i.meter AND h.attribute = i.attribute`

// dropReceiptsSQL deletes some of the customers' receipts. Nobody can request these receipts any more, and they
// contain attribute values. The parameters are $1–$2 shard and customer, and $3 the number of receipts.
const dropReceiptsSQL = `
DELETE FROM receipts_SLOT r
USING (SELECT f.shard, f.customer, f.key FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
	LATERAL (SELECT shard, customer, key FROM receipts_SLOT WHERE shard = i.shard AND customer = i.customer LIMIT $3) f
	LIMIT $3) d
WHERE r.shard = ANY (ARRAY[d.shard]) AND r.customer = d.customer AND r.key = d.key`

const emptySQL = `
UPDATE counters c SET state = '{}', departed = NULL, units = 0, version = version + 1
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute)
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute`

// bookSQL adds the units of the running hours to the usage table. The rows are already locked. The parameters
// $1–$4 are the key.
const bookSQL = `
INSERT INTO usage (shard, customer, meter, hour, admitted)
SELECT i.shard, i.customer, i.meter, c.hour, c.units
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute),
LATERAL (SELECT hour, units FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c
WHERE c.units > 0
ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET
	admitted = least(usage.admitted::numeric + excluded.admitted, 9223372036854775807)`

// Cleared is the result of one call of ClearCounters.
type Cleared struct {
	Rows    int  // the number of cleared counters and dropped receipts
	Removed int  // the number of these counters that were removed
	Left    bool // there are more counters to clear, or another transaction had locked one
	// Receipts reports that there may be more receipts to drop.
	Receipts bool
}

// ClearCounters books the units of the running hours of customers that are no longer charged, and then removes
// at most most of their counters. If keepOwn is true, the customers' own counters remain without the state of
// limits, as the account of the charges. ClearCounters removes the customers' receipts, too. It does not wait
// for locks, so counters that a hit has locked remain, and Left reports them. The rest of the transaction uses
// the settings of ByKey.
func ClearCounters(ctx context.Context, tx pgx.Tx, customers []int64, keepOwn bool, most int) (done Cleared, err error) {
	if err := session.ByKey(ctx, tx); err != nil {
		return done, err
	}
	lock, left := lockAllSQL, anyLeftSQL
	if keepOwn {
		lock, left = lockUncleanSQL, uncleanLeftSQL
	}
	shards, customers := inLockOrder(customers)
	var own, values session.Columns
	var k model.CounterKey
	rows, _ := tx.Query(ctx, lock, shards, customers, most)
	_, err = pgx.ForEachRow(rows, []any{&k.Customer, &k.Meter, &k.Attribute}, func() error {
		if k.Attribute == "" {
			own.Add(k)
		} else {
			values.Add(k)
		}
		return nil
	})
	for _, step := range []func() error{
		func() error { return execOn(ctx, tx, &own, dropHoldsSQL) },
		func() error { return execOn(ctx, tx, &values, dropHoldsSQL) },
		func() error { return clearOwn(ctx, tx, &own, keepOwn) },
		func() error { return execOn(ctx, tx, &values, removeSQL) },
	} {
		if err == nil {
			err = step()
		}
	}
	receipts := 0
	for _, slot := range locked.ReceiptTables {
		if err == nil {
			tag, failed := tx.Exec(ctx, strings.ReplaceAll(dropReceiptsSQL, "SLOT", slot), shards, customers, most)
			dropped := int(tag.RowsAffected())
			receipts, err = receipts+dropped, failed
			done.Receipts = done.Receipts || dropped == most
		}
	}
	if err == nil {
		err = tx.QueryRow(ctx, left, shards, customers).Scan(&done.Left)
	}
	done.Rows, done.Removed = len(own.Shard)+len(values.Shard)+receipts, len(values.Shard)
	if !keepOwn {
		done.Removed = len(own.Shard) + len(values.Shard)
	}
	return done, err
}

// clearOwn books the units of customers' own counters, and then empties or removes the counters.
func clearOwn(ctx context.Context, tx pgx.Tx, own *session.Columns, keep bool) error {
	if err := execOn(ctx, tx, own, bookSQL); err != nil {
		return err
	}
	if keep {
		return execOn(ctx, tx, own, emptySQL)
	}
	return execOn(ctx, tx, own, removeSQL)
}

// execOn runs a statement on counters, if there are any. The keys are the first parameters.
func execOn(ctx context.Context, tx pgx.Tx, c *session.Columns, statement string) error {
	if len(c.Shard) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, statement, c.Shard, c.Customer, c.Meter, c.Attribute)
	return err
}
