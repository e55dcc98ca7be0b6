package accounts

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
)

// A draft whose seller has no name is held, and is not due again before the seller has one. Then
// PutSeller adds a row to seller_calls, and the worker makes the drafts due, some at a time.
//
// No draft is missed. Who holds one looks at the seller under a lock, and has it until the commit.
// So the name comes later, and the call finds the draft; or it was there before, and the draft is
// due at once. A call is removed when no draft is left that it could be for.

// waiting are the drafts that were held since their seller had no name. The index
// invoices_nameless has these only.
const waiting = `i.status = 'draft' AND i.held IS NOT NULL AND i.document #>> '{seller,name}' = ''`

// wake makes the drafts of customers due that waited for a name, by the customers' clocks. A draft
// whose own time is still to come keeps this time.
const wake = `
	UPDATE invoices i SET held = NULL,
		finalize_at = CASE WHEN i.finalize_at = 9223372036854775807 THEN coalesce(t.now, $2::bigint) ELSE i.finalize_at END
	FROM customers c LEFT JOIN test_clocks t ON t.id = c.test_clock_id
	WHERE c.id = i.customer_id AND i.customer_id = ANY ($1::bigint[]) AND ` + waiting

const anyCall = `SELECT EXISTS (SELECT FROM seller_calls)`

const readSellerCall = `SELECT seller FROM seller_calls ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`

const takeWaiting = `
	SELECT o.customer_id FROM (
		SELECT DISTINCT customer_id FROM invoices i WHERE ` + waiting + ` AND i.document #>> '{seller,key}' = $1
		ORDER BY customer_id LIMIT $2) w
	JOIN open_periods o ON o.customer_id = w.customer_id ORDER BY o.customer_id FOR UPDATE OF o SKIP LOCKED`

const dropSellerCalls = `
	DELETE FROM seller_calls WHERE seller = $1 AND NOT EXISTS (
		SELECT FROM invoices i WHERE ` + waiting + ` AND i.document #>> '{seller,key}' = $1)`

// WakeNamed makes drafts due whose seller got a name, those of so many customers at most. Those of
// customers that somebody else works on are left to the next time.
func (as *Accounts) WakeNamed(ctx context.Context, atOnce int) error {
	var called bool
	if err := as.pool.QueryRow(ctx, anyCall).Scan(&called); err != nil || !called {
		return store.Classify(err)
	}
	return as.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var seller string
		if err := tx.QueryRow(ctx, readSellerCall).Scan(&seller); errors.Is(err, pgx.ErrNoRows) {
			return nil // another node answers it
		} else if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, takeWaiting, seller, atOnce)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		if err := as.makeDue(ctx, tx, ids...); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, dropSellerCalls, seller)
		return err
	})
}

// makeDue has the drafts of customers tried that waited for their sellers' names. The transaction
// has the customers' locks.
func (as *Accounts) makeDue(ctx context.Context, tx pgx.Tx, ids ...int64) error {
	now, err := as.Now(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, wake, ids, now); err != nil {
		return err
	}
	return as.SetDue(ctx, tx, ids...)
}

// MaxNameless is where the counting of a seller's drafts ends.
const MaxNameless = 1000

// maxNamelessSellers bounds how many sellers Nameless tells of.
const maxNamelessSellers = 5

// Nameless is a seller without a name, and how many drafts wait for one: MaxNameless for as many or more.
type Nameless struct {
	Seller string
	Drafts int
}

const readNameless = `
	SELECT s.key, w.drafts FROM sellers s, LATERAL (
		SELECT count(*) AS drafts FROM (
			SELECT FROM invoices i WHERE ` + waiting + ` AND i.document #>> '{seller,key}' = s.key LIMIT $1) d) w
	WHERE s.name = '' AND w.drafts > 0 ORDER BY s.key LIMIT $2`

// Nameless finds the sellers whose drafts wait for a name. Customers on test clocks count, too.
func (as *Accounts) Nameless(ctx context.Context) ([]Nameless, error) {
	rows, _ := as.pool.Query(ctx, readNameless, MaxNameless, maxNamelessSellers)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Nameless])
	return all, store.Classify(err)
}
