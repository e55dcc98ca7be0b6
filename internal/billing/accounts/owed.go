package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// When billing is over, no period's invoice comes that could take charges and corrections. They get an
// extra invoice. owed_at of open_periods says since when something waits for one, by the customer's clock.
//
// Charges and void invoices have the lock of the customer's billing, and write owed_at. Adjustments are
// made by the engine, which must not wait for that lock: it adds a row to owed_calls. It does so from the moment
// at which an end is written, so that none is missed while the last period is being closed. The worker answers.

const owe = `UPDATE open_periods SET owed_at = least(owed_at, $2) WHERE customer_id = $1 AND start_at IS NULL`

// Owe notes that something came at an instant, µs by the customer's clock, for which there has to be an
// extra invoice. The transaction has the lock of the customer's billing, which is over. It calls SetDue later.
func Owe(ctx context.Context, tx pgx.Tx, customer, at int64) error {
	_, err := tx.Exec(ctx, owe, customer, at)
	return err
}

const anyOwedCall = `SELECT EXISTS (SELECT FROM owed_calls)`

// maxOwedCalls bounds how many calls are answered at once.
const maxOwedCalls = 1000

const readOwedCalls = `
	SELECT c.id, c.customer_id FROM (SELECT id, customer_id FROM owed_calls ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) c
	JOIN open_periods o ON o.customer_id = c.customer_id ORDER BY o.customer_id FOR UPDATE OF o SKIP LOCKED`

// noteOwed takes the calls for adjustments that some extra invoice has to take. Their hour is in a closed period
// whose invoice is final and bills the meter. While it is a draft, it takes them itself.
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

// AnswerOwed makes extra invoices due of customers that were adjusted after their billing was over. Calls of
// customers that somebody else works on are left to the next time. It reports whether it answered any.
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

// The last closed period is that of whatever chain. Where none is closed, billing ended before it began.
const readChainEnds = `
	SELECT o.customer_id, o.chain, coalesce((
			SELECT min(n) FROM invoices i WHERE i.customer_id = o.customer_id AND i.chain = o.chain AND i.n < 0), 0) - 1,
		coalesce(p.end_at, a.ends_at, a.starts_at), coalesce(p.end_at, 0), coalesce(p.plan_id, c.plan_id), coalesce(p.version, c.pinned_version, c.joined_version)
	FROM unnest($1::bigint[]) AS w (id)
	JOIN open_periods o ON o.customer_id = w.id
	JOIN billing_accounts a ON a.customer_id = w.id
	JOIN customers c ON c.id = w.id
	LEFT JOIN LATERAL (SELECT end_at, plan_id, version FROM periods WHERE customer_id = w.id ORDER BY end_at DESC LIMIT 1) p ON true`

// ChainEnds are the ends of the chains of customers whose billing is over, as extra invoices are of them: see
// billing.Period.Extra. FullEnd is 0 where no period was ever closed. The transaction has the customers' locks.
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
