package upkeep

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// Stored is the key of a stored counter, and the shard of its row.
type Stored struct {
	Shard int16
	model.CounterKey
}

// BeforeStored precedes all counters.
var BeforeStored = Stored{Shard: -1}

// nextStored lists counters in the order of their key, from shard to shard. The parameters are $1–$4 the key after
// which to continue, and $5 the number of counters.
const nextStored = `
SELECT shard, customer, meter, attribute FROM counters
WHERE (shard, customer, meter, attribute) > ($1, $2, $3, $4)
ORDER BY shard, customer, meter, attribute LIMIT $5`

// NextStored lists at most limit counters that follow the counter after.
func NextStored(ctx context.Context, tx pgx.Tx, after Stored, limit int) ([]Stored, error) {
	rows, _ := tx.Query(ctx, nextStored, after.Shard, after.Customer, after.Meter, after.Attribute, limit)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Stored, err error) {
		return s, row.Scan(&s.Shard, &s.Customer, &s.Meter, &s.Attribute)
	})
	if err != nil {
		return nil, fmt.Errorf("list counters: %w", err)
	}
	return all, nil
}

// Unnumbered is a counter whose row has a change number above the database's newest change number.
type Unnumbered struct {
	Stored
	Change, Newest int64
}

// The parameters are $1–$4 the key, and $5 the newest change.
const unnumberedSQL = `
SELECT i.n, c.change
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT change FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute OFFSET 0) c
WHERE c.change > $5
ORDER BY i.n`

// UnnumberedOf returns the counters whose row was judged under a change that the database does not have. Such a
// change is from a history that the database no longer has, or was written by hand. tx must have one snapshot.
func UnnumberedOf(ctx context.Context, tx pgx.Tx, of []Stored) ([]Unnumbered, error) {
	var newest int64
	if err := tx.QueryRow(ctx, `SELECT number FROM change_number WHERE one`).Scan(&newest); err != nil {
		return nil, fmt.Errorf("read the newest change: %w", err)
	}
	var columns session.Columns
	for _, s := range of {
		columns.Add(s.CounterKey)
	}
	rows, _ := tx.Query(ctx, unnumberedSQL, columns.Shard, columns.Customer, columns.Meter, columns.Attribute, newest)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u Unnumbered, err error) {
		var n int
		if err = row.Scan(&n, &u.Change); err == nil {
			u.Stored, u.Newest = of[n-1], newest
		}
		return u, err
	})
	if err != nil {
		return nil, fmt.Errorf("compare counters with the changes that there are: %w", err)
	}
	return all, nil
}
