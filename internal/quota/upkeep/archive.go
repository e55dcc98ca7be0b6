package upkeep

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// ArchivedMonth is a time span that was archived at once: a month, or all hours before the first month.
type ArchivedMonth struct {
	To     int64    // the end, µs
	Tables []string // the present names of the tables
}

// A NotWholeError reports that the hours before a bound are not whole partitions.
type NotWholeError struct {
	// End is the end of the partition that has hours before and after the bound, µs. It is the first possible
	// bound.
	End int64
}

func (e *NotWholeError) Error() string {
	end := time.UnixMicro(e.End).UTC().Format(time.RFC3339)
	return "one table has all hours before " + end + ": that is the first instant that can be given"
}

// part is a partition of a hot table.
type part struct {
	Name         string
	Lower, Upper *int64 // µs; nil means no bound
}

// partsSQL returns the partitions of a table with the names that catalogs contain. The parameter $1 is the table.
const partsSQL = `SELECT (SELECT relname FROM pg_class WHERE oid = partition::regclass), lower::bigint, upper::bigint FROM (` + boundsSQL + `) b ORDER BY upper`

func partsOf(ctx context.Context, pool *pgxpool.Pool, table string) ([]part, error) {
	rows, _ := pool.Query(ctx, partsSQL, table, false)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[part])
}

// archived returns the tables whose months are archived.
func archived() []partitioned { return byMonth[:2] }

// CanArchive reports whether the hours before an instant, µs, are whole partitions. Errors:
// *NotWholeError.
func CanArchive(ctx context.Context, pool *pgxpool.Pool, before int64) error {
	for _, table := range archived() {
		parts, err := partsOf(ctx, pool, table.name)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if (p.Lower == nil || *p.Lower < before) && p.Upper != nil && *p.Upper > before {
				return &NotWholeError{*p.Upper}
			}
		}
	}
	return nil
}

// oldHoursSQL finds the customers' own counters of a page of a shard that have units of an hour before an
// instant, and the last key of a full page. The parameters are $1 the shard, $2–$4 the key after which to
// continue, $5 the number of keys of a page, and $6 the instant.
const oldHoursSQL = `
SELECT customer, meter, attribute, old, n
FROM (SELECT customer, meter, attribute, attribute = '' AND units > 0 AND hour < $6 AS old, row_number() OVER (ORDER BY customer, meter, attribute) AS n
      FROM (SELECT customer, meter, attribute, units, hour FROM counters
            WHERE shard = $1 AND (customer, meter, attribute) > ($2, $3, $4)
            ORDER BY customer, meter, attribute LIMIT $5) page) numbered
WHERE old OR n = $5`

// The rows are locked in the order of their key, as hits lock them. The parameters are $1–$4 the key, and $5 the
// instant.
const (
	lockOldSQL = `
SELECT FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute),
LATERAL (SELECT FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	FOR UPDATE) c`
	bookOldSQL = `
INSERT INTO usage (shard, customer, meter, hour, admitted)
SELECT i.shard, i.customer, i.meter, c.hour, c.units
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute),
LATERAL (SELECT hour, units FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute
	OFFSET 0) c
WHERE c.units > 0 AND c.hour < $5
ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET
	admitted = least(usage.admitted::numeric + excluded.admitted, 9223372036854775807)`
	bookedOldSQL = `
UPDATE counters c SET units = 0, version = version + 1
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) AS i(shard, customer, meter, attribute)
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute AND c.hour < $5`
)

// bookRows is the maximum number of counters that one transaction locks, because hits on them wait for the
// transaction.
const bookRows = 250

// BookBefore books the units that counters contain for hours before an instant, µs, and returns the number of
// these counters. Otherwise the next hit would book the units, perhaps after their month was archived.
// BookBefore increments the version of each row, so that a lane that remembers the old row cannot swap it.
func BookBefore(ctx context.Context, pool *pgxpool.Pool, before int64) (booked int, err error) {
	for shard := range int16(model.Shards) {
		for last, more := (model.CounterKey{}), true; more; {
			var old []model.CounterKey
			var k model.CounterKey
			var n int64
			var has bool
			more = false
			rows, _ := pool.Query(ctx, oldHoursSQL, shard, last.Customer, last.Meter, last.Attribute, aheadPage, before)
			_, err := pgx.ForEachRow(rows, []any{&k.Customer, &k.Meter, &k.Attribute, &has, &n}, func() error {
				if has {
					old = append(old, k)
				}
				if n == aheadPage {
					last, more = k, true
				}
				return nil
			})
			for len(old) > 0 && err == nil {
				some := old[:min(bookRows, len(old))]
				err = retried(ctx, func() error { return bookOld(ctx, pool, some, before) })
				booked, old = booked+len(some), old[len(some):]
			}
			if err != nil {
				return booked, fmt.Errorf("book the units of old hours: %w", err)
			}
		}
	}
	return booked, nil
}

func bookOld(ctx context.Context, pool *pgxpool.Pool, keys []model.CounterKey, before int64) error {
	c := session.ColumnsOf(keys)
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := session.ByKey(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockOldSQL, c.Shard, c.Customer, c.Meter, c.Attribute); err != nil {
			return err
		}
		for _, sql := range []string{bookOldSQL, bookedOldSQL} {
			if _, err := tx.Exec(ctx, sql, c.Shard, c.Customer, c.Meter, c.Attribute, before); err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	// archiveTries is the maximum number of tries for a lock that another transaction holds. archivePause is the
	// pause between two tries.
	archiveTries = 60
	archivePause = 500 * time.Millisecond
)

// retried repeats an action that failed because of a conflict with another transaction.
func retried(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || !postgres.Retryable(err) || try == archiveTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(archivePause):
		}
	}
}

// Refuse makes the database reject usage and adjustments of hours before an instant, µs. It adds a constraint to
// the partitions that contain these hours, and to the partition that would contain them later. Therefore hits of
// the running month never wait for Refuse.
func Refuse(ctx context.Context, pool *pgxpool.Pool, before int64) error {
	bound := strconv.FormatInt(before, 10)
	for _, table := range archived() {
		if err := fillMonths(ctx, pool, table, before); err != nil {
			return err
		}
		parts, err := partsOf(ctx, pool, table.name)
		if err != nil {
			return err
		}
		names := []string{table.name + "_default"}
		for _, p := range parts {
			if p.Upper != nil && *p.Upper <= before {
				names = append(names, p.Name)
			}
		}
		for _, name := range names {
			name = pgx.Identifier{name}.Sanitize()
			err := retried(ctx, func() error {
				_, err := pool.Exec(ctx, `SET LOCAL lock_timeout = '`+partitionLockWait+`';
					ALTER TABLE `+name+` DROP CONSTRAINT IF EXISTS archived, ADD CONSTRAINT archived CHECK (hour >= `+bound+`) NOT VALID`, pgx.QueryExecModeSimpleProtocol)
				return err
			})
			if err != nil {
				return fmt.Errorf("refuse the hours before in %s: %w", name, err)
			}
		}
	}
	return nil
}

// fillMonths creates the months before an instant whose rows are in the default partition.
func fillMonths(ctx context.Context, pool *pgxpool.Pool, table partitioned, before int64) error {
	for {
		var first *int64
		if err := pool.QueryRow(ctx, `SELECT min(hour) FROM `+table.name+`_default WHERE hour < $1`, before).Scan(&first); err != nil || first == nil {
			return err
		}
		year, month, _ := time.UnixMicro(*first).UTC().Date()
		err := retried(ctx, func() error {
			_, err := NewPartitioner(pool, nil, nil).makeMonth(ctx, table, time.Date(year, month, 1, 0, 0, 0, 0, time.UTC))
			return err
		})
		if err != nil {
			return fmt.Errorf("make the month of %d in %s: %w", *first, table.name, err)
		}
	}
}

// Rows of rejected hours never change, so they can be summed without a lock.
const sumsOf = `
INSERT INTO archived_sums AS s (shard, customer, meter, units, denied)
SELECT shard, customer, meter, sum(admitted), sum(denied) FROM PARTITION GROUP BY shard, customer, meter ORDER BY shard, customer, meter
ON CONFLICT (shard, customer, meter) DO UPDATE SET units = s.units + excluded.units, denied = s.denied + excluded.denied`

// TakeOut removes the oldest partitions of usage and adjustments that end at or before an instant, µs. The hours
// before the instant must be rejected already, see Refuse. The tables of the partitions are renamed and stay, and
// the sums of their usage are kept. TakeOut runs in one transaction. It returns nil if no such partition is left.
func TakeOut(ctx context.Context, pool *pgxpool.Pool, before int64) (*ArchivedMonth, error) {
	month := &ArchivedMonth{To: math.MaxInt64}
	var of [2]*part
	for i, table := range archived() {
		parts, err := partsOf(ctx, pool, table.name)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 || parts[0].Upper == nil || *parts[0].Upper > min(before, month.To) {
			continue
		}
		if *parts[0].Upper < month.To {
			of[0], month.To = nil, *parts[0].Upper
		}
		of[i] = &parts[0]
	}
	if month.To == math.MaxInt64 {
		return nil, nil //nolint:nilnil // no partition is left
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if of[0] != nil {
			if _, err := tx.Exec(ctx, sumsInto(of[0].Name)); err != nil {
				return err
			}
		}
		return retried(ctx, func() error { // in a savepoint, so that the sums are computed only once
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return month.detach(ctx, tx, of) })
		})
	})
	if err != nil {
		return nil, fmt.Errorf("take the hours before %s out: %w", time.UnixMicro(month.To).UTC().Format(time.RFC3339), err)
	}
	return month, nil
}

func sumsInto(partition string) string {
	return strings.Replace(sumsOf, "PARTITION", pgx.Identifier{partition}.Sanitize(), 1)
}

const (
	noteTable = `INSERT INTO archived_tables (name, part_of, was, from_at, to_at) VALUES ($1, $2, $3, $4, $5)`
	noteGone  = `UPDATE archive SET gone_before = greatest(gone_before, $1)`
)

// detach removes partitions from the tables. Transactions that book or read usage wait for detach. The wait is at
// most the lock timeouts and some milliseconds. The locks are in the order in which workers lock the tables.
func (m *ArchivedMonth) detach(ctx context.Context, tx pgx.Tx, of [2]*part) error {
	m.Tables = nil
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '`+partitionLockWait+`'`); err != nil {
		return err
	}
	for i, table := range archived() {
		p := of[i]
		if p == nil {
			continue
		}
		now := "archived_" + p.Name
		old, renamed := pgx.Identifier{p.Name}.Sanitize(), pgx.Identifier{now}.Sanitize()
		for _, sql := range []string{
			`ALTER TABLE ` + table.name + ` DETACH PARTITION ` + old,
			`ALTER TABLE ` + old + ` DROP CONSTRAINT archived`,
			`ALTER TABLE ` + old + ` RENAME TO ` + renamed,
			`ALTER INDEX IF EXISTS ` + pgx.Identifier{p.Name + "_pkey"}.Sanitize() + ` RENAME TO ` + pgx.Identifier{now + "_pkey"}.Sanitize(),
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, noteTable, now, table.name, p.Name, p.Lower, p.Upper); err != nil {
			return err
		}
		m.Tables = append(m.Tables, now)
	}
	_, err := tx.Exec(ctx, noteGone, m.To)
	return err
}
