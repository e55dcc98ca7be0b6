package upkeep

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// Threshold is one that a charge has reached, as its transaction wrote it.
type Threshold struct {
	Customer    int64 // the id of the customer's row
	Meter       int32
	At          int64  // µs, by the customer's clock
	Written     int64  // when the charge wrote it, µs, by PostgreSQL's clock
	TestClock   string // the key of the customer's test clock; "": real time
	Limit       string // name
	Percent     int
	Used        int64 // units
	Units       int64 // what the limit is
	Burst       int64 // of a limit that refills: percents are of it; 0: of others
	AmountMinor int64 // of a cap
	Start       int64 // of the window, µs; 0: it has none with a start
	Reset       int64 // when all would be there again, µs; 0: never
}

// IsCap reports whether it is a cap's.
func (t *Threshold) IsCap() bool { return t.Limit == model.CapName }

// $1 is 1: one entry of the key is looked at.
const anyThreshold = `SELECT shard FROM thresholds ORDER BY shard, customer, meter, at, version, name, percent LIMIT $1`

// QueueAnyThresholds asks whether some wait to be taken, in a batch, which goes out as one transaction.
func QueueAnyThresholds(b *pgx.Batch, some *bool) {
	b.Queue(anyThreshold, 1).QueryRow(func(row pgx.Row) error {
		var shard int16
		err := row.Scan(&shard)
		if *some = err == nil; errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// takeThresholds deletes the first ones, and returns them. A charge's transaction inserts, and nobody
// else deletes, so it waits for nobody. $1 how many.
const takeThresholds = `
WITH oldest AS MATERIALIZED (
	SELECT shard, customer, meter, at, version, name, percent FROM thresholds
	ORDER BY shard, customer, meter, at, version, name, percent LIMIT $1
), taken AS (
	DELETE FROM thresholds t USING oldest s
	WHERE t.shard = ANY (ARRAY[s.shard]) AND t.customer = s.customer AND t.meter = s.meter AND t.at = s.at
	  AND t.version = s.version AND t.name = s.name AND t.percent = s.percent
	RETURNING t.*)
SELECT customer, meter, at, written_at, clock, name, percent, used, units, burst, amount_minor, starts, resets
FROM taken ORDER BY at, customer, meter, version, name, percent`

// TakeThresholds takes at most so many out of the table, in a transaction of the caller's: they are the
// caller's if that is committed. Those of one customer and meter are in the order of their charges.
func TakeThresholds(ctx context.Context, tx pgx.Tx, most int) ([]Threshold, error) {
	if err := session.ByKey(ctx, tx); err != nil {
		return nil, err
	}
	rows, _ := tx.Query(ctx, takeThresholds, most) // a failed Query is the error of CollectRows
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Threshold])
}

// ownRowsSQL are customers' own counters. $1–$2 shard and customer. OFFSET 0 keeps it one look-up of the key
// for each.
const ownRowsSQL = `
SELECT i.customer, c.meter, c.at, c.version, c.change, array_send(c.state), array_send(c.departed)
FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
LATERAL (SELECT meter, at, version, change, state, departed FROM counters
	WHERE shard = i.shard AND customer = i.customer AND attribute = '' OFFSET 0) c`

// Unraised are targets of customers' own counters that may have reached a threshold which nobody has
// raised, at now, µs. The rows are not locked: whoever raises it asks again. targets is as CleanerOptions has
// it.
func Unraised(ctx context.Context, pool *pgxpool.Pool, customers []int64, now int64,
	targets func(context.Context, []model.CounterKey) ([]*model.Target, error),
) (all []*model.Target, err error) {
	var keys []model.CounterKey
	var rows []model.Row
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := session.ByKey(ctx, tx); err != nil {
			return err
		}
		shards, customers := inLockOrder(customers)
		var key model.CounterKey
		var row model.Row
		var state, departed []byte
		read, _ := tx.Query(ctx, ownRowsSQL, shards, customers)
		_, err := pgx.ForEachRow(read, []any{&key.Customer, &key.Meter, &row.At, &row.Version, &row.Change, &state, &departed}, func() (err error) {
			if row.State, err = session.ReadInts(state); err == nil {
				row.Departed, err = session.ReadIntsOrNone(departed)
			}
			if err == nil {
				keys, rows = append(keys, key), append(rows, row)
			}
			return err
		})
		return err
	})
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	found, err := targets(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, t := range found {
		if t == nil || !t.Notifies() {
			continue
		}
		_, held := model.Unmarked(rows[i].State)
		again := held != 0 || t.Level || t.Uncounted(rows[i].State) || t.Check("", &rows[i]) != nil // a worker knows more of it
		if !again {
			t.Settle(0, &rows[i], max(t.Instant(now), rows[i].At))
			_, again = t.Raise(&rows[i], max(t.Instant(now), rows[i].At), 0)
		}
		if again {
			all = append(all, t)
		}
	}
	return all, nil
}
