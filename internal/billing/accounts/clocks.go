package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
)

// Customers on a test clock become due when the clock is set. Thousands of clocks may never be set again, so
// the worker checks only the clocks that have a call, which is a row of clock_calls.
//
// A call becomes visible to other transactions when the change that caused it is committed. A transaction
// that removes calls reads them first and then checks, with a later snapshot, whether anything is due. So a
// call that arrives in the meantime stays. While the worker processes a customer, other transactions still
// see the customer as due.

const callClock = `
	INSERT INTO clock_calls (clock_id) SELECT id FROM test_clocks t
	WHERE key = $1 AND EXISTS (SELECT FROM open_periods o WHERE o.clock_id = t.id)`

// clockSet implements store.Billing.ClockSet.
func clockSet(ctx context.Context, w *store.Writing, key string) error {
	_, err := w.Exec(ctx, callClock, key)
	return err
}

const callClocksOf = `
	INSERT INTO clock_calls (clock_id)
	SELECT DISTINCT clock_id FROM open_periods WHERE customer_id = ANY ($1) AND clock_id IS NOT NULL`

// maxCalls is the maximum number of rows of clock_calls that one transaction processes.
const maxCalls = 10_000

const readCalls = `SELECT id FROM clock_calls ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED`

const dropCalls = `
	DELETE FROM clock_calls c WHERE id = ANY ($1) AND NOT EXISTS (
		SELECT FROM test_clocks t, LATERAL (
			(SELECT FROM open_periods o WHERE o.clock_id = t.id AND o.due_at <= t.now LIMIT 1)
			UNION ALL
			(SELECT FROM unpaid_invoices u WHERE u.clock_id = t.id AND u.told_at IS NULL AND u.due_at <= t.now LIMIT 1)) due
		WHERE t.id = c.clock_id)`

// AnswerCalls deletes the rows of clock_calls for test clocks that have nothing due. Blocked customers count
// as due, and so do overdue invoices without an event.
func (as *Accounts) AnswerCalls(ctx context.Context) error {
	return as.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, readCalls, maxCalls)
		calls, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err == nil && len(calls) > 0 {
			_, err = tx.Exec(ctx, dropCalls, calls)
		}
		return err
	})
}
