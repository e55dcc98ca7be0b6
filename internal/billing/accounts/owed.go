package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// When billing is over, no further period has an invoice that could contain late charges and corrections. An
// extra invoice contains them. owed_at of open_periods is the instant, by the customer's clock, since which
// an item waits for an extra invoice.
//
// Operations on charges and void invoices lock the customer's billing and write owed_at. Adjustments run in
// the engine, which must not wait for that lock, so the engine adds a row to owed_calls. It does so as soon
// as an end of billing is written, so that no adjustment is missed while the last period is being closed. The
// worker processes the rows.

const owe = `UPDATE open_periods SET owed_at = least(owed_at, $2) WHERE customer_id = $1 AND start_at IS NULL`

// Owe records that a customer needs an extra invoice for an item of the instant at, µs by the customer's
// clock. The transaction has locked the customer's billing, which is over, and calls SetDue later.
func Owe(ctx context.Context, tx pgx.Tx, customer, at int64) error {
	_, err := tx.Exec(ctx, owe, customer, at)
	return err
}

const anyOwedCall = `SELECT EXISTS (SELECT FROM owed_calls)`

// maxOwedCalls is the maximum number of rows of owed_calls that one transaction processes.
const maxOwedCalls = 1000

const readOwedCalls = `
	SELECT c.id, c.customer_id FROM (SELECT id, customer_id FROM owed_calls ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) c
	JOIN open_periods o ON o.customer_id = c.customer_id ORDER BY o.customer_id FOR UPDATE OF o SKIP LOCKED`

// noteOwed sets owed_at for adjustments that need an extra invoice. The hour of such an adjustment lies in a
// closed period whose invoice is final and bills the meter. If the period's invoice is still a draft, that
// draft contains the adjustment.
const noteOwed = `
	UPDATE open_periods o SET owed_at = least(o.owed_at, w.at) FROM (
		SELECT c.customer_id, min(c.at) AS at FROM owed_calls c
		JOIN LATERAL (
			SELECT chain, n, end_at FROM periods WHERE customer_id = c.customer_id AND start_at <= c.hour ORDER BY start_at DESC LIMIT 1
		) p ON c.hour < p.end_at
		JOIN LATERAL (
			SELECT id FROM invoices WHERE customer_id = c.customer_id AND chain = p.chain AND n = p.n AND kind = 'period'
				AND status IN ('finalized', 'paid', 'credited') OFFSET 0) i ON true
		JOIN invoice_lines l ON l.invoice_id = i.id AND l.kind = 'usage'
		JOIN meters m ON m.key = l.meter AND m.id = c.meter
		WHERE c.id = ANY ($1::bigint[]) GROUP BY c.customer_id
	) w WHERE o.customer_id = w.customer_id AND o.start_at IS NULL`

const dropOwedCalls = `DELETE FROM owed_calls WHERE id = ANY ($1::bigint[])`

// AnswerOwed schedules extra invoices for customers whose usage was adjusted after their billing was over. It
// leaves customers that another transaction has locked to the next call. It reports whether it processed any
// calls.
func (as *Accounts) AnswerOwed(ctx context.Context) (answered bool, err error) {
	var called bool
	if err := as.pool.QueryRow(ctx, anyOwedCall).Scan(&called); err != nil || !called {
		return false, store.Classify(err)
	}
	err = as.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var calls, customers []int64
		var call, customer int64
		err := postgres.ForEach(ctx, tx, []any{&call, &customer}, func() error {
			calls, customers = append(calls, call), append(customers, customer)
			return nil
		}, readOwedCalls, maxOwedCalls)
		if err != nil || len(calls) == 0 {
			return err
		}
		answered = true
		if _, err := tx.Exec(ctx, noteOwed, calls); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, dropOwedCalls, calls); err != nil {
			return err
		}
		return as.SetDue(ctx, tx, customers...)
	})
	return answered, err
}

// readChainEnds reads the end of the customer's last closed period, in any chain. If no period is closed,
// billing ended before it began.
const readChainEnds = `
	SELECT o.customer_id, o.chain, coalesce((
			SELECT min(n) FROM invoices i WHERE i.customer_id = o.customer_id AND i.chain = o.chain AND i.n < 0), 0) - 1,
		coalesce(p.end_at, a.ends_at, a.starts_at), coalesce(p.end_at, 0), coalesce(p.plan_id, c.plan_id), coalesce(p.version, c.pinned_version, c.joined_version)
	FROM unnest($1::bigint[]) AS w (id)
	JOIN open_periods o ON o.customer_id = w.id
	JOIN billing_accounts a ON a.customer_id = w.id
	JOIN customers c ON c.id = w.id
	LEFT JOIN LATERAL (SELECT end_at, plan_id, version FROM periods WHERE customer_id = w.id ORDER BY end_at DESC LIMIT 1) p ON true`

// ChainEnds returns the chain ends of customers whose billing is over, in the form that extra invoices use,
// see billing.Period.Extra. FullEnd is 0 if no period was ever closed. The transaction has locked the
// customers.
func ChainEnds(ctx context.Context, q postgres.Querier, customers map[int64]*Customer) (map[int64]*billing.Period, error) {
	ids := make([]int64, 0, len(customers))
	for id := range customers {
		ids = append(ids, id)
	}
	all := make(map[int64]*billing.Period, len(ids))
	var id int64
	var p billing.Period
	err := postgres.ForEach(ctx, q, []any{&id, &p.Chain, &p.N, &p.End, &p.FullEnd, &p.PlanID, &p.Version}, func() error {
		end := p
		end.Start, end.FullStart, end.KnownEnd = p.End, p.FullEnd, p.End
		all[id] = &end
		return nil
	}, readChainEnds, ids)
	return all, err
}
