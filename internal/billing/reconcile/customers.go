package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// nextCustomers lists customers that must be billed.
const nextCustomers = `SELECT id FROM customers WHERE id > $1 AND NOT anonymous ORDER BY id LIMIT $2`

// walkCustomers checks the periods, the units, the credits and the terms of each customer.
func (r *Reconciler) walkCustomers(ctx context.Context, found *findings) error {
	w := walk[int64]{
		r: r, rows: "customers", checks: []string{PeriodsAreChained, UnitsAreBilled, CreditsAddUp, PeriodsCanClose, TermsAgree},
		next: func(ctx context.Context, tx pgx.Tx, after int64, n int) ([]int64, error) {
			rows, _ := tx.Query(ctx, nextCustomers, after, n)
			return pgx.CollectRows(rows, pgx.RowTo[int64])
		},
		look: func(ctx context.Context, tx pgx.Tx, ids []int64) (bad []wrong[int64], err error) {
			for _, check := range []func(context.Context, pgx.Tx, []int64) ([]wrong[int64], error){
				notBilled, brokenChains, withoutInvoice, lost, badCredits, blocked, otherTerms,
			} {
				more, err := check(ctx, tx, ids)
				if err != nil {
					return nil, err
				}
				bad = append(bad, more...)
			}
			return bad, nil
		},
	}
	return w.run(ctx, 0, found)
}

// wrongCustomers reads disagreements of customers. It scans each row of the statement into into, whose first
// element must be id.
func wrongCustomers(ctx context.Context, tx pgx.Tx, check string, id *int64, into []any, example func(e Disagreement) Disagreement, statement string,
	ids []int64,
) (bad []wrong[int64], err error) {
	rows, _ := tx.Query(ctx, statement, ids) // ForEachRow returns the error of a failed Query
	_, err = pgx.ForEachRow(rows, into, func() error {
		bad = append(bad, wrong[int64]{*id, check, example(Disagreement{customer: *id})})
		return nil
	})
	return bad, err
}

const selectNotBilled = `
	SELECT c.id FROM unnest($1::bigint[]) AS w (id) JOIN customers c ON c.id = w.id
	WHERE NOT c.anonymous AND (NOT EXISTS (SELECT FROM open_periods o WHERE o.customer_id = w.id)
		OR NOT EXISTS (SELECT FROM billing_accounts a WHERE a.customer_id = w.id))`

// notBilled finds customers that the billing worker can never process.
func notBilled(ctx context.Context, tx pgx.Tx, ids []int64) ([]wrong[int64], error) {
	var id int64
	return wrongCustomers(ctx, tx, PeriodsAreChained, &id, []any{&id}, func(e Disagreement) Disagreement {
		return e.says("The customer has no account, or no row that says which billing period is open.")
	}, selectNotBilled, ids)
}

// selectBroken finds gaps in chains. A period must begin at the end of the period before it in its chain. The
// first period of a chain must follow all earlier chains. The open period must be the last one; without an
// open period, the row still contains the next position in the chain.
const selectBroken = `
	SELECT customer_id, chain, n, start_at, CASE WHEN chain_before = chain THEN n_before ELSE -1 END, end_before FROM (
		SELECT *, lag(chain) OVER w AS chain_before, lag(n) OVER w AS n_before, lag(end_at) OVER w AS end_before FROM (
			SELECT customer_id, chain, n, start_at, end_at, false AS open FROM periods WHERE customer_id = ANY ($1)
			UNION ALL
			SELECT customer_id, chain, n, start_at, end_at, true FROM open_periods WHERE customer_id = ANY ($1)
		) p WINDOW w AS (PARTITION BY customer_id ORDER BY chain, n, open)
	) f
	WHERE CASE
		WHEN chain_before IS DISTINCT FROM chain THEN n <> 0 OR start_at < end_before
		ELSE n <> n_before + 1 OR start_at <> end_before
	END`

func brokenChains(ctx context.Context, tx pgx.Tx, ids []int64) ([]wrong[int64], error) {
	var id int64
	var chain, n, before int
	var start, end *int64
	return wrongCustomers(ctx, tx, PeriodsAreChained, &id, []any{&id, &chain, &n, &start, &before, &end}, func(e Disagreement) Disagreement {
		if start != nil {
			e = e.on(*start)
		}
		switch {
		case before < 0 && n > 0:
			return e.says(fmt.Sprintf("Chain %d begins with period %d: the periods before it are missing.", chain, n))
		case before < 0:
			return e.says(fmt.Sprintf("Chain %d begins before the chain before it ended.", chain))
		}
		return e.says(fmt.Sprintf("In chain %d, period %d comes after period %d. It must be the next one, and begin where that one ended.", chain, n, before))
	}, selectBroken, ids)
}

// selectWithoutInvoice finds periods that have a price but no invoice, not even a void one.
const selectWithoutInvoice = `
	SELECT p.customer_id, p.start_at FROM periods p
	JOIN plan_versions v ON v.plan_id = p.plan_id AND v.version = p.version
	WHERE p.customer_id = ANY ($1) AND (p.prices <> '{}' OR v.document->'prices'->0 IS NOT NULL)
	  AND NOT EXISTS (SELECT FROM invoices i WHERE i.customer_id = p.customer_id AND i.period_end = p.end_at
		AND i.chain = p.chain AND i.n = p.n AND i.kind = 'period')`

func withoutInvoice(ctx context.Context, tx pgx.Tx, ids []int64) ([]wrong[int64], error) {
	var id, start int64
	return wrongCustomers(ctx, tx, UsageIsBilled, &id, []any{&id, &start}, func(e Disagreement) Disagreement {
		return e.on(start).says("The billing period is closed and has prices, but no invoice.")
	}, selectWithoutInvoice, ids)
}

// selectBadCredits finds credits whose remaining amount differs from the sum of the entries, or whose amount
// differs from the granted sum. For a correct credit, granted = applied − returned + expired + withdrawn +
// left.
const selectBadCredits = `
	SELECT c.customer_id, c.id, c.amount_minor, c.left_minor, e.granted, e.sum, e.signs FROM credits c, LATERAL (
		SELECT coalesce(sum(amount_minor) FILTER (WHERE kind = 'granted'), 0)::bigint AS granted, coalesce(sum(amount_minor), 0)::bigint AS sum,
			coalesce(bool_and((amount_minor > 0) = (kind IN ('granted', 'returned'))), true) AS signs
		FROM credit_entries WHERE customer_id = c.customer_id AND credit_id = c.id) e
	WHERE c.customer_id = ANY ($1) AND (e.granted <> c.amount_minor OR e.sum <> c.left_minor OR NOT e.signs)`

func badCredits(ctx context.Context, tx pgx.Tx, ids []int64) ([]wrong[int64], error) {
	var id, amount, left, granted, sum int64
	var credit string
	var signs bool
	return wrongCustomers(ctx, tx, CreditsAddUp, &id, []any{&id, &credit, &amount, &left, &granted, &sum, &signs}, func(e Disagreement) Disagreement {
		switch {
		case granted != amount:
			return e.differs(amount, granted, fmt.Sprintf("Credit %q is of another amount than its entry says that was granted.", credit))
		case sum != left:
			return e.differs(sum, left, fmt.Sprintf("Of credit %q another amount is left than its entries add up to.", credit))
		}
		return e.says(fmt.Sprintf("Credit %q has an entry whose amount has the wrong sign.", credit))
	}, selectBadCredits, ids)
}

const selectBlocked = `SELECT customer_id, blocked, start_at FROM open_periods WHERE customer_id = ANY ($1) AND blocked IS NOT NULL`

func blocked(ctx context.Context, tx pgx.Tx, ids []int64) ([]wrong[int64], error) {
	var id int64
	var why string
	var start *int64
	return wrongCustomers(ctx, tx, PeriodsCanClose, &id, []any{&id, &why, &start}, func(e Disagreement) Disagreement {
		if start != nil {
			e = e.on(*start)
		}
		return e.says("The billing period cannot be closed, or its invoice not be finalized: " + why)
	}, selectBlocked, ids)
}

// selectOtherTerms finds customers whose plan, version, timezone or anchor differs from the newest terms that
// are not pending.
const selectOtherTerms = `
	SELECT c.id FROM unnest($1::bigint[]) AS w (id) JOIN customers c ON c.id = w.id
	LEFT JOIN LATERAL (
		SELECT * FROM customer_terms WHERE customer_id = c.id AND NOT waits ORDER BY change DESC, how IN ('period_end', 'base_end') DESC LIMIT 1
	) t ON true
	WHERE NOT c.anonymous AND (t.plan_id, t.joined_version, t.pinned_version, t.timezone, t.billing_anchor)
		IS DISTINCT FROM (c.plan_id, c.joined_version, c.pinned_version, c.timezone, c.billing_anchor)`

// otherTerms finds customers whose limits and prices follow different terms.
func otherTerms(ctx context.Context, tx pgx.Tx, ids []int64) ([]wrong[int64], error) {
	var id int64
	return wrongCustomers(ctx, tx, TermsAgree, &id, []any{&id}, func(e Disagreement) Disagreement {
		return e.says("The customer's plan, pin, timezone or anchor is not that of its newest terms, which price its billing periods.")
	}, selectOtherTerms, ids)
}
