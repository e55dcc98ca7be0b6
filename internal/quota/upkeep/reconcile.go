package upkeep

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Report is what Reconcile found.
type Report struct {
	OK     bool
	Checks []Check
}

// Check is one equation that must hold. Rows is on how many it was checked; Examples are
// the first of those for which it does not hold.
type Check struct {
	Name     string
	Rows     int64
	Examples []Mismatch
}

// Mismatch is a customer's meter whose numbers differ: units charged in all, and units
// booked as usage, in finished hours and in the running one.
type Mismatch struct {
	Customer int64
	Meter    int32
	Charged  int64
	Finished int64
	Running  int64
}

// maxExamples bounds what is listed of a failed check.
const maxExamples = 10

// What every charge adds to a customer's own counter it adds to the usage of an hour, in
// the same row; so the two never differ, nor does either exist without the other. The
// sums are numeric: what is wrong may be large. Of a customer that was forgotten only the
// usage stays, its counters go a while after it: there is nothing to hold it against.
const chargedIsBookedSQL = `
WITH booked AS (
	SELECT shard, customer, meter, sum(admitted) AS finished FROM usage GROUP BY shard, customer, meter
), own AS (
	SELECT shard, customer, meter, total, units FROM counters WHERE attribute = ''
), both_sides AS (
	SELECT customer, meter, coalesce(total, 0) AS charged, coalesce(finished, 0) AS finished, coalesce(units, 0) AS running
	FROM own FULL JOIN booked USING (shard, customer, meter)
	WHERE EXISTS (SELECT FROM customers c WHERE c.id = customer)
), wrong AS (
	SELECT * FROM both_sides WHERE charged <> finished + running ORDER BY customer, meter LIMIT $1
)
SELECT checked, customer, meter, charged, finished::bigint, running
FROM (SELECT count(*) AS checked FROM both_sides) n LEFT JOIN wrong ON true
ORDER BY customer, meter`

// Reconcile checks, on one snapshot, that what was charged and what was booked as usage
// are equal, for all customers there are, archived ones too. It reads every counter and all usage, so it belongs into quiet hours or on
// a replica.
func Reconcile(ctx context.Context, pool *pgxpool.Pool) (Report, error) {
	check := Check{Name: "charged_is_booked"}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, chargedIsBookedSQL, maxExamples)
		// One row at least: the one that tells of no mismatch has nulls.
		var customer, charged, finished, running *int64
		var meter *int32
		_, err := pgx.ForEachRow(rows, []any{&check.Rows, &customer, &meter, &charged, &finished, &running}, func() error {
			if customer != nil {
				check.Examples = append(check.Examples, Mismatch{*customer, *meter, *charged, *finished, *running})
			}
			return nil
		})
		return err
	})
	if err != nil {
		return Report{}, fmt.Errorf("reconcile: %w", err)
	}
	return Report{OK: len(check.Examples) == 0, Checks: []Check{check}}, nil
}
