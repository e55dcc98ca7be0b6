package invoices

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

const readInvoice = `SELECT` + invoiceColumns + `WHERE i.id = $1::uuid`

// Invoice returns an invoice. A draft is reassembled, so it includes all usage so far. If the invoice does
// not exist, the error is billing.ErrUnknownInvoice.
func (is *Invoices) Invoice(ctx context.Context, id string) (i *billing.Invoice, err error) {
	if !validID(id) {
		return nil, billing.ErrUnknownInvoice
	}
	err = is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		found, err := is.present(ctx, tx, readInvoice, id)
		if err == nil && len(found) == 0 {
			err = billing.ErrUnknownInvoice
		}
		if err == nil {
			i = found[0]
		}
		return err
	})
	return i, err
}

// present reads invoices in their present state, which means that drafts are reassembled.
func (is *Invoices) present(ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]*billing.Invoice, error) {
	all, err := invoicesOf(ctx, tx, statement, args...)
	if err != nil {
		return nil, err
	}
	var drafts []*billing.Invoice
	var ids []int64
	for _, i := range all {
		if i.Status == billing.StatusDraft {
			drafts, ids = append(drafts, i), append(ids, i.Customer)
		}
	}
	if len(drafts) == 0 {
		return all, nil
	}
	now, err := is.accounts.Now(ctx)
	if err != nil {
		return nil, err
	}
	customers, err := accounts.ReadCustomers(ctx, tx, ids, now)
	if err != nil {
		return nil, err
	}
	tasks, err := draftTasks(ctx, tx, drafts, customers)
	if err != nil {
		return nil, err
	}
	if err := is.Assemble(ctx, tx, tasks); err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if t.Err != nil {
			return nil, fmt.Errorf("draft %s: %w", t.draft.ID, t.Err)
		}
		*t.draft = t.Result.Invoice
	}
	return all, nil
}

// Filter selects invoices. A zero field matches all invoices.
type Filter struct {
	Customer string // the customer's key
	// TestClock is the key of the customers' test clock, or AnyClock for all customers. If TestClock is "",
	// customers on PostgreSQL's time match.
	TestClock string
	Status    string // a status, or billing.StatusOverdue
	// From and To bound the end of the period, µs, [From, To). A nil bound does not apply.
	From, To *int64
}

// AnyClock matches the invoices of all customers.
const AnyClock = plans.AnyClock

// listInvoices begins the statement that lists invoices. The conditions of a Filter and inOrder follow. Each
// kind of filter has an index in this order.
const (
	listInvoices = `SELECT` + invoiceColumns + `
	WHERE ($1 = '' OR i.status = $1) AND i.period_end >= $2 AND i.period_end < $3 AND (i.period_end, i.id) > ($4, $5::uuid)`
	inOrder = ` ORDER BY i.period_end, i.id LIMIT $6`

	// listOverdue begins the statement that lists overdue invoices. $1 is PostgreSQL's time.
	listOverdue = `SELECT` + invoiceColumns + ` JOIN unpaid_invoices u ON u.invoice_id = i.id
	WHERE u.due_at <= coalesce(t.now, $1::bigint) AND u.period_end >= $2 AND u.period_end < $3 AND (u.period_end, u.invoice_id) > ($4, $5::uuid)`
	overdueInOrder = ` ORDER BY u.period_end, u.invoice_id LIMIT $6`
)

const clockByKey = `SELECT id FROM test_clocks WHERE key = $1`

// list returns the statement for the filter, its first parameter, and its parameters from $7 on. now is
// PostgreSQL's time.
func (f *Filter) list(ctx context.Context, q postgres.Querier, now int64) (statement string, first any, args []any, err error) {
	if f.Status == billing.StatusOverdue {
		where, args, err := f.chosen(ctx, q, "u")
		return listOverdue + where + overdueInOrder, now, args, err
	}
	where, args, err := f.chosen(ctx, q, "i")
	return listInvoices + where + inOrder, f.Status, args, err
}

// chosen returns the SQL conditions of the filter and their parameters, which begin at $7. of is the alias of
// the filtered table.
func (f *Filter) chosen(ctx context.Context, q postgres.Querier, of string) (where string, args []any, err error) {
	and := func(column string, value any) {
		args = append(args, value)
		where += " AND " + of + "." + column + " = $" + strconv.Itoa(6+len(args))
	}
	if f.Customer != "" {
		id, _, err := accounts.Find(ctx, q, f.Customer)
		if err != nil {
			return "", nil, err
		}
		and("customer_id", id)
	}
	switch f.TestClock {
	case AnyClock:
	case "":
		where += " AND " + of + ".clock_id IS NULL"
	default:
		var id int32
		if err := q.QueryRow(ctx, clockByKey, f.TestClock).Scan(&id); errors.Is(err, pgx.ErrNoRows) {
			return "", nil, plans.ErrUnknownClock
		} else if err != nil {
			return "", nil, err
		}
		and("clock_id", id)
	}
	return where, args, nil
}

const (
	pageKind = "invoice"
	zeroID   = "00000000-0000-0000-0000-000000000000"
)

// Invoices returns invoices in the order of the ends of their periods, with drafts in their present state.
// Errors: plans.ErrUnknownCustomer, billing.ErrAnonymous, plans.ErrUnknownClock, model.FieldErrors for a
// wrong page.
func (is *Invoices) Invoices(ctx context.Context, f Filter, page plans.Page) (list *plans.List[*billing.Invoice], err error) {
	limit, after, err := store.OpenPage(page, pageKind, func(position string) bool {
		_, _, ok := readPosition(position)
		return ok
	})
	if err != nil {
		return nil, err
	}
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if f.From != nil {
		from = *f.From
	}
	if f.To != nil {
		to = *f.To
	}
	end, id := int64(math.MinInt64), zeroID
	if after != "" {
		end, id, _ = readPosition(after)
	}
	err = is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		now, err := is.accounts.Now(ctx)
		if err != nil {
			return err
		}
		statement, first, args, err := f.list(ctx, tx, now)
		if err != nil {
			return err
		}
		found, err := is.present(ctx, tx, statement, append([]any{first, from, to, end, id, limit + 1}, args...)...)
		list = store.Paged(found, limit, pageKind, func(i *billing.Invoice) string {
			return strconv.FormatInt(i.PeriodEnd, 10) + "/" + i.ID
		})
		return err
	})
	return list, err
}

// readPosition parses the end of a page.
func readPosition(s string) (end int64, id string, ok bool) {
	before, id, ok := strings.Cut(s, "/")
	end, err := strconv.ParseInt(before, 10, 64)
	return end, id, ok && err == nil && validID(id)
}
