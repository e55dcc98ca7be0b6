package sweep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

const (
	// maxCleared limits the customers of one transaction of the second step, and maxClearedRows limits its
	// rows.
	maxCleared     = 200
	maxClearedRows = 5000
	// maxClears limits the transactions of one round. The next round does the rest.
	maxClears = 500
)

const forgottenCustomers = `
	SELECT customer FROM forgotten WHERE at < $1
	ORDER BY customer LIMIT $2 FOR UPDATE SKIP LOCKED`

// doneForgotten also deletes open adjustments, because nobody bills a forgotten customer. No node adjusts
// the customer's usage any more by this time.
const doneForgotten = `
	WITH queued AS (DELETE FROM open_adjustments WHERE customer = ANY ($1))
	DELETE FROM forgotten WHERE customer = ANY ($1)`

// clearAll performs the second step for all customers that are due.
func (f *Forgetter) clearAll(ctx context.Context) error {
	for range maxClears {
		done, err := f.clear(ctx)
		if err != nil || !done {
			return err
		}
	}
	return nil
}

// clear removes the counters and receipts of some forgotten customers, except for rows that another
// transaction has locked. done is true if there was progress.
func (f *Forgetter) clear(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.store.Within())
	defer cancel()
	now, err := f.store.Now(ctx)
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, f.store.Pool(), func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, forgottenCustomers, now.Add(-f.grace), maxCleared)
		customers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(customers) == 0 {
			return err
		}
		cleared, err := upkeep.ClearCounters(ctx, tx, customers, false, maxClearedRows)
		if err != nil {
			return err
		}
		if cleared.Receipts { // further receipts may exist, so no customer is done yet
			done = true
			return nil
		}
		without, err := upkeep.IdleSince(ctx, tx, customers, -1)
		if err != nil {
			return err
		}
		done = cleared.Rows > 0 || len(without) > 0
		_, err = tx.Exec(ctx, doneForgotten, without)
		return err
	})
	return done, store.Classify(err)
}
