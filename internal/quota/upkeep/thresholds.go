package upkeep

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// Threshold is a threshold that a charge has reached, as written by the charge's transaction.
type Threshold struct {
	Customer    int64 // the id of the customer's row
	Meter       int32
	At          int64  // µs, by the customer's clock
	Written     int64  // the time at which the charge wrote the threshold, µs, by PostgreSQL's clock
	TestClock   string // the key of the customer's test clock; "": real time
	Limit       string // the name of the limit
	Percent     int
	Used        int64 // units
	Units       int64 // the number of units of the limit
	Burst       int64 // the burst of a limit that refills, the base of its percentages; 0 for other limits
	AmountMinor int64 // the amount of a cap
	Start       int64 // the start of the window, µs; 0: the limit's windows have no start
	Reset       int64 // the instant at which the whole quota would be available again, µs; 0: never
}

// IsCap reports whether the threshold belongs to a cap.
func (t *Threshold) IsCap() bool { return t.Limit == model.CapName }

// The parameter $1 is 1, so one entry of the key is read.
const anyThreshold = `SELECT shard FROM thresholds ORDER BY shard, customer, meter, at, version, name, percent LIMIT $1`

// QueueAnyThresholds adds a query to a batch, which is sent as one transaction. The query sets some to whether
// thresholds are waiting in the table.
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

// takeThresholds deletes the first thresholds, and returns them. Only transactions of charges insert thresholds,
// and nothing else deletes them, so the statement does not wait for locks. The parameter $1 is the number of
// thresholds.
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

// TakeThresholds removes at most most thresholds from the table, in the caller's transaction, and returns them.
// The removal takes effect if the caller commits the transaction. The thresholds of one customer and meter are
// in the order of their charges.
func TakeThresholds(ctx context.Context, tx pgx.Tx, most int) ([]Threshold, error) {
	if err := session.ByKey(ctx, tx); err != nil {
		return nil, err
	}
	rows, _ := tx.Query(ctx, takeThresholds, most) // CollectRows returns the error of a failed Query
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Threshold])
}

// ownRowsSQL returns customers' own counters. The parameters $1–$2 are shard and customer. OFFSET 0 keeps the plan
// at one lookup of the key for each customer.
const ownRowsSQL = `
SELECT i.customer, c.meter, c.at, c.version, c.change, array_send(c.state), array_send(c.departed)
FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
LATERAL (SELECT meter, at, version, change, state, departed FROM counters
	WHERE shard = i.shard AND customer = i.customer AND attribute = '' OFFSET 0) c`

// Unraised returns the targets of customers' own counters that, at now, µs, may have reached a threshold that
// was not raised. Unraised does not lock the rows, so the caller must check a threshold again before raising it.
// For targets see CleanerOptions.
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
		again := held != 0 || t.Level || t.Uncounted(rows[i].State) || t.Check("", &rows[i]) != nil // only a worker knows more
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
