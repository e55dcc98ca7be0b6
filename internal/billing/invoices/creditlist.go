package invoices

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// Credits are what a customer has in advance, and how it came and went: a page of both lists.
type Credits struct {
	Balances []billing.Credit // the newest first
	Entries  []Entry          // the newest first
	Clock    string           // the customer's test clock; "" is PostgreSQL's time
	Next     string           // the cursor of the next page, "" at the end of both
}

// Entry is a booking on a credit. AmountMinor is what it adds to what is left.
type Entry struct {
	Credit      string
	Kind        string
	AmountMinor int64
	Invoice     string // that took it, gave it back or left it; "" is none
	Reason      string // of what was withdrawn
	At          int64
	seq         int64 // the credit's
	n           int   // the credit's n-th entry
}

const listCredits = `SELECT` + creditColumns + `WHERE customer_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`

const listEntries = `
	SELECT e.credit_id, e.kind, e.amount_minor, coalesce(coalesce(e.invoice_id, e.paid_invoice)::text, ''), coalesce(e.reason, ''), e.at, c.seq, e.n
	FROM credit_entries e
	JOIN credits c ON c.customer_id = e.customer_id AND c.id = e.credit_id
	WHERE e.customer_id = $1 AND (e.at, c.seq, e.n) < ($2, $3, $4::bigint) ORDER BY e.at DESC, c.seq DESC, e.n DESC LIMIT $5`

const clockOf = `SELECT coalesce((SELECT key FROM test_clocks t WHERE t.id = c.test_clock_id), '') FROM customers c WHERE c.id = $1`

const pageCredits = "credits"

// creditPlace is where a page ended: of the credits before seq, and of the entries before the
// other three.
type creditPlace struct{ seq, at, of, n int64 }

func (p creditPlace) String() string { return fmt.Sprintf("%d/%d/%d/%d", p.seq, p.at, p.of, p.n) }

// readCreditPlace reads a place. The empty text is before all.
func readCreditPlace(s string) (p creditPlace, ok bool) {
	if s == "" {
		return creditPlace{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}, true
	}
	parts := strings.Split(s, "/")
	into := []*int64{&p.seq, &p.at, &p.of, &p.n}
	if len(parts) != len(into) {
		return p, false
	}
	for i, text := range parts {
		var err error
		if *into[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return p, false
		}
	}
	return p, true
}

// Credits returns a customer's credits and entries, the newest first. A page has at most so many
// of each, 1,000 where no limit is asked for. Errors: plans.ErrUnknownCustomer,
// billing.ErrAnonymous, model.FieldErrors for a wrong page.
func (is *Invoices) Credits(ctx context.Context, key string, page plans.Page) (out Credits, err error) {
	if page.Limit == 0 {
		page.Limit = plans.MaxPage
	}
	limit, after, err := store.OpenPage(page, pageCredits, func(position string) bool {
		_, ok := readCreditPlace(position)
		return ok
	})
	if err != nil {
		return out, err
	}
	from, _ := readCreditPlace(after)
	err = is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		id, _, err := accounts.Find(ctx, tx, key)
		if err != nil {
			return err
		}
		if err = tx.QueryRow(ctx, clockOf, id).Scan(&out.Clock); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, listCredits, id, from.seq, limit+1)
		if out.Balances, err = pgx.CollectRows(rows, scanCredit); err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, listEntries, id, from.at, from.of, from.n, limit+1)
		out.Entries, err = pgx.CollectRows(rows, scanEntry)
		return err
	})
	return out.end(from, limit), err
}

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	return e, row.Scan(&e.Credit, &e.Kind, &e.AmountMinor, &e.Invoice, &e.Reason, &e.At, &e.seq, &e.n)
}

// end takes off what was read beyond a page, and says where the next one begins. A list that has
// ended has nothing before its place.
func (c Credits) end(from creditPlace, limit int) Credits {
	next, more := creditPlace{math.MinInt64, math.MinInt64, from.of, from.n}, false
	if len(c.Balances) > limit {
		c.Balances, more = c.Balances[:limit], true
		next.seq = c.Balances[limit-1].Seq
	}
	if len(c.Entries) > limit {
		c.Entries, more = c.Entries[:limit], true
		last := &c.Entries[limit-1]
		next.at, next.of, next.n = last.At, last.seq, int64(last.n)
	}
	if more {
		c.Next = store.Cursor(pageCredits, next.String())
	}
	return c
}
