package closing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/session"
)

// The pauses before a customer that could not be done is tried again, µs. Somebody may just have
// held a row of one that is busy. One that has been busy for busyMost is blocked.
const (
	retryBlocked = int64(60e6)
	retryBusy    = int64(1e6)
	busyMost     = int64(60e6)
)

// putOff returns since when the customer has been busy.
const putOff = `
	UPDATE open_periods SET busy_since = coalesce(busy_since, $2), blocked = NULL, retry_at = $3 WHERE customer_id = $1 RETURNING busy_since`

const blockCustomer = `
	UPDATE open_periods o SET blocked = $2, retry_at = $3 FROM customers c WHERE o.customer_id = $1 AND c.id = $1 RETURNING c.key`

// block puts a customer off that cannot be done, in the transaction that found it out.
func (w *Worker) block(ctx context.Context, tx pgx.Tx, j *job, now int64) error {
	why := j.err
	if errors.Is(why, session.ErrBusy) {
		var since int64
		if err := tx.QueryRow(ctx, putOff, j.c.ID, now, now+retryBusy).Scan(&since); err != nil || now-since < busyMost {
			return err
		}
		why = fmt.Errorf("others keep its rows busy since %s: %w", time.UnixMicro(since).UTC().Format(time.RFC3339), why)
	}
	return w.blockWith(ctx, tx, j.c.ID, now, why)
}

// blockAlone puts a customer off whose transaction failed.
func (w *Worker) blockAlone(ctx context.Context, id, now int64, why error) error {
	ctx, cancel := context.WithTimeout(ctx, w.stepTimeout)
	defer cancel()
	return store.Classify(w.blockWith(ctx, w.pool, id, now, why))
}

// blockWith blocks a customer, and tells operators.
func (w *Worker) blockWith(ctx context.Context, q postgres.Querier, id, now int64, why error) error {
	var key string
	if err := q.QueryRow(ctx, blockCustomer, id, why.Error(), now+retryBlocked).Scan(&key); err != nil {
		return err
	}
	w.worked.failed.Add(1)
	w.options.Log.Error("a customer's billing period cannot be closed or its invoice not be finalized; others are not held up, and it is tried again",
		"customer", key, "error", why)
	return nil
}
