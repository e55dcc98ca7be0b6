package sweep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

const (
	// maxCleared and maxClearedRows bound one transaction of the second step.
	maxCleared     = 200
	maxClearedRows = 5000
	// maxClears bounds one round of them; what is left is for the next one.
	maxClears = 500
)

const forgottenCustomers = `
	SELECT customer FROM forgotten WHERE at < clock_timestamp() - $1::interval
	ORDER BY customer LIMIT $2 FOR UPDATE SKIP LOCKED`

const doneForgotten = `DELETE FROM forgotten WHERE customer = ANY ($1)`

// clearAll is the second step for all who are due.
func (f *Forgetter) clearAll(ctx context.Context) error {
	for range maxClears {
		done, err := f.clear(ctx)
		if err != nil || !done {
			return err
		}
	}
	return nil
}

// clear removes the counters and receipts of some forgotten customers, as far as nobody
// holds them; done says that it got on.
func (f *Forgetter) clear(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, f.store.Pool(), func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, forgottenCustomers, f.grace, maxCleared)
		customers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(customers) == 0 {
			return err
		}
		cleared, err := upkeep.ClearCounters(ctx, tx, customers, false, maxClearedRows)
		if err != nil {
			return err
		}
		if cleared.Receipts { // nobody is done with before they are gone
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
