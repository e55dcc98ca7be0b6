package sweep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

const (
	// maxCleared bounds the customers of one transaction of the second step, and
	// maxClearedRows its rows.
	maxCleared     = 200
	maxClearedRows = 5000
	// maxClears bounds the transactions of one round. The next round does the rest.
	maxClears = 500
)

const forgottenCustomers = `
	SELECT customer FROM forgotten WHERE at < $1
	ORDER BY customer LIMIT $2 FOR UPDATE SKIP LOCKED`

// Nobody bills who is forgotten. No node adjusts the usage any more by now.
const doneForgotten = `
	WITH queued AS (DELETE FROM open_adjustments WHERE customer = ANY ($1))
	DELETE FROM forgotten WHERE customer = ANY ($1)`

// clearAll does the second step for all customers that are due.
func (f *Forgetter) clearAll(ctx context.Context) error {
	for range maxClears {
		done, err := f.clear(ctx)
		if err != nil || !done {
			return err
		}
	}
	return nil
}

// clear removes the counters and receipts of some forgotten customers, except those that
// somebody has locked. done reports that there was progress.
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
		if cleared.Receipts { // receipts may be left, so no customer is done yet
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
