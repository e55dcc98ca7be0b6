package closing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing/invoices"
	"quotad/internal/plans/store"
)

// overdueAtOnce is the maximum number of invoices that one query selects for overdue events.
const overdueAtOnce = 100

// takeOverdue and takeOverdueByClock lock overdue invoices without an overdue event. They skip locked rows,
// because such an invoice is being paid, or another node is writing its event. A payment locks its row last,
// and this transaction locks only rows of unpaid_invoices.
const (
	takeOverdue = `
	SELECT u.invoice_id::text, $1::bigint, u.due_at FROM unpaid_invoices u WHERE u.clock_id IS NULL AND u.told_at IS NULL AND u.due_at <= $1
	ORDER BY u.due_at LIMIT $2 FOR UPDATE SKIP LOCKED`

	takeOverdueByClock = `
	SELECT o.invoice_id::text, t.now, o.due_at FROM (SELECT DISTINCT clock_id FROM clock_calls) c JOIN test_clocks t ON t.id = c.clock_id, LATERAL (
		SELECT invoice_id, due_at FROM unpaid_invoices WHERE clock_id = t.id AND told_at IS NULL AND due_at <= t.now ORDER BY due_at LIMIT $1
		FOR UPDATE SKIP LOCKED) o
	LIMIT $1`

	markOverdue = `
	UPDATE unpaid_invoices u SET told_at = w.at FROM unnest($1::uuid[], $2::bigint[]) AS w (invoice_id, at) WHERE u.invoice_id = w.invoice_id`
)

// tellOverdue writes the events of invoices that became overdue, one event for each invoice until it is paid.
// told is the number of events. due_at alone decides whether an invoice is overdue, also before its event.
func (w *Worker) tellOverdue(ctx context.Context) (told int, err error) {
	within, cancel := context.WithTimeout(ctx, w.stepTimeout)
	defer cancel()
	now, err := w.accounts.Now(within)
	if err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(within, w.pool, func(tx pgx.Tx) error {
		var ids []string
		var at, since []int64
		for _, take := range []struct {
			statement string
			args      []any
		}{{takeOverdueByClock, []any{overdueAtOnce}}, {takeOverdue, []any{now, overdueAtOnce}}} {
			var id string
			var when, due int64
			rows, _ := tx.Query(within, take.statement, take.args...)
			if _, err := pgx.ForEachRow(rows, []any{&id, &when, &due}, func() error {
				ids, at, since = append(ids, id), append(at, when), append(since, due)
				return nil
			}); err != nil {
				return err
			}
		}
		if told = len(ids); told == 0 {
			return nil
		}
		if _, err := tx.Exec(within, markOverdue, ids, at); err != nil {
			return err
		}
		return invoices.TellOverdue(within, tx, ids, since)
	})
	if err != nil {
		return 0, fmt.Errorf("tell of overdue invoices: %w", store.Classify(err))
	}
	return told, nil
}
