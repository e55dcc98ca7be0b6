package accounts

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
)

// A draft whose seller has no name is held, and is not due again until the seller has a name. When the seller
// is named, PutSeller adds a call, which is a row of seller_calls. The worker then makes the drafts due in
// batches.
//
// No draft is missed. A transaction that holds a draft reads the seller under a lock and keeps the lock until
// the commit. A later naming adds a call that finds the draft. After an earlier naming, the draft is due at
// once. A call is removed when no waiting draft of its seller is left.

// waiting selects the drafts that are held because their seller has no name. The index invoices_nameless
// contains only these drafts.
const waiting = `i.status = 'draft' AND i.held IS NOT NULL AND i.document #>> '{seller,name}' = ''`

// wake makes the customers' drafts that waited for a seller's name due, by the customers' clocks. A draft
// with a finalization time of its own keeps that time.
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

// WakeNamed makes drafts due whose seller now has a name, for at most atOnce customers. It leaves customers
// that another transaction has locked to the next call.
func (as *Accounts) WakeNamed(ctx context.Context, atOnce int) error {
	var called bool
	if err := as.pool.QueryRow(ctx, anyCall).Scan(&called); err != nil || !called {
		return store.Classify(err)
	}
	return as.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var seller string
		if err := tx.QueryRow(ctx, readSellerCall).Scan(&seller); errors.Is(err, pgx.ErrNoRows) {
			return nil // another node processes the call
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

// makeDue makes the customers' drafts that waited for their sellers' names due. The transaction has locked
// the customers.
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

// MaxNameless is the maximum count of a seller's waiting drafts; more drafts are not counted.
const MaxNameless = 1000

// maxNamelessSellers is the maximum number of sellers that Nameless returns.
const maxNamelessSellers = 5

// Nameless is a seller without a name, with the number of drafts that wait for the name. The number is at
// most MaxNameless.
type Nameless struct {
	Seller string
	Drafts int
}

const readNameless = `
	SELECT s.key, w.drafts FROM sellers s, LATERAL (
		SELECT count(*) AS drafts FROM (
			SELECT FROM invoices i WHERE ` + waiting + ` AND i.document #>> '{seller,key}' = s.key LIMIT $1) d) w
	WHERE s.name = '' AND w.drafts > 0 ORDER BY s.key LIMIT $2`

// Nameless returns the sellers whose drafts wait for a name, including drafts of customers on test clocks.
func (as *Accounts) Nameless(ctx context.Context) ([]Nameless, error) {
	rows, _ := as.pool.Query(ctx, readNameless, MaxNameless, maxNamelessSellers)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Nameless])
	return all, store.Classify(err)
}
