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

// Credits is a page of a customer's credits and of their entries.
type Credits struct {
	Balances []billing.Credit // newest first
	Entries  []Entry          // newest first
	Clock    string           // the customer's test clock; "" is PostgreSQL's time
	Next     string           // the cursor of the next page; "" at the end of both lists
}

// Entry is a booking on a credit. AmountMinor is the signed change of the remaining amount.
type Entry struct {
	Credit      string
	Kind        string
	AmountMinor int64
	Invoice     string // id of the invoice that used, returned or granted the amount; "" for no invoice
	Reason      string // the reason for a withdrawal
	At          int64
	seq         int64 // the Seq of the credit
	n           int   // the entry's number within the credit
}

const listCredits = `SELECT` + creditColumns + `WHERE customer_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`

const listEntries = `
	SELECT e.credit_id, e.kind, e.amount_minor, coalesce(coalesce(e.invoice_id, e.paid_invoice)::text, ''), coalesce(e.reason, ''), e.at, c.seq, e.n
	FROM credit_entries e
	JOIN credits c ON c.customer_id = e.customer_id AND c.id = e.credit_id
	WHERE e.customer_id = $1 AND (e.at, c.seq, e.n) < ($2, $3, $4::bigint) ORDER BY e.at DESC, c.seq DESC, e.n DESC LIMIT $5`

const clockOf = `SELECT coalesce((SELECT key FROM test_clocks t WHERE t.id = c.test_clock_id), '') FROM customers c WHERE c.id = $1`

const pageCredits = "credits"

// creditPlace is the end of a page. The next page begins with the credits before seq, and with the entries
// before at, of and n.
type creditPlace struct{ seq, at, of, n int64 }

func (p creditPlace) String() string { return fmt.Sprintf("%d/%d/%d/%d", p.seq, p.at, p.of, p.n) }

// readCreditPlace parses a place. The empty text is the place before all items.
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

// Credits returns a customer's credits and entries, the newest first. A page contains at most page.Limit of
// each, or 1,000 without a limit. Errors: plans.ErrUnknownCustomer, billing.ErrAnonymous, model.FieldErrors
// for a wrong page.
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

// end removes the items beyond the page size and sets the cursor of the next page. A list without more items
// is empty on the next page.
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
