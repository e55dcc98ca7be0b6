package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/timeline"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// AccountInput is an account as an admin writes it. Instants are µs.
type AccountInput struct {
	StartsAt    *int64 // nil keeps the start
	TrialEndsAt *int64
	EndsAt      *int64
	PeriodEnd   bool    // EndsAt is the end of the running period
	BaseEnd     bool    // EndsAt is the end of the periods that the running base price covers
	AfterEnd    *string // nil keeps the setting
	Seller      string
	Buyer       billing.Buyer
	Taxes       []billing.TaxRate
	DueDays     int

	OrderReference string
	Notes          []string
}

// Account is the billing account that the API returns.
type Account struct {
	billing.Account
	Clock       string // the key of the customer's test clock; "" is real time
	BilledUntil *int64 // the end of the last closed period
}

// ETag returns the account's entity tag, unquoted.
func (a *Account) ETag() string { return strconv.FormatInt(a.Change, 10) }

const billedUntil = `SELECT max(end_at) FROM periods WHERE customer_id = $1`

// Account returns a customer's billing account. Errors: plans.ErrUnknownCustomer, billing.ErrAnonymous.
func (as *Accounts) Account(ctx context.Context, key string) (*Account, error) {
	now, err := as.Now(ctx)
	if err != nil {
		return nil, err
	}
	id, _, err := Find(ctx, as.pool, key)
	if err != nil {
		return nil, store.Classify(err)
	}
	read, err := ReadCustomers(ctx, as.pool, []int64{id}, now)
	if err != nil {
		return nil, store.Classify(err)
	}
	if read[id] == nil {
		return nil, billing.ErrAnonymous
	}
	return as.show(ctx, as.pool, read[id])
}

func (as *Accounts) show(ctx context.Context, q postgres.Querier, c *Customer) (*Account, error) {
	a := &Account{Account: c.Account, Clock: c.Clock}
	if a.Buyer.Address == nil { // the buyer has never been written
		a.Buyer.Address = []string{}
	}
	return a, store.Classify(q.QueryRow(ctx, billedUntil, c.ID).Scan(&a.BilledUntil))
}

// PutAccount writes a customer's billing account. The input replaces the whole account except for StartsAt
// and AfterEnd, which stay if omitted. The first write needs no precondition because it replaces defaults.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, plans.ErrPrecondition, plans.ErrPreconditionRequired,
// billing.ErrAnonymous, billing.ErrBeforePeriod, billing.ErrPaidAhead, billing.ErrClosing, model.FieldErrors.
func (as *Accounts) PutAccount(ctx context.Context, key string, in *AccountInput, pre plans.Precondition) (a *Account, err error) {
	if bad := in.check(); len(bad) > 0 {
		return nil, bad
	}
	if in.Taxes == nil {
		in.Taxes = []billing.TaxRate{}
	}
	if in.Buyer.Address == nil {
		in.Buyer.Address = []string{}
	}
	if in.Notes == nil {
		in.Notes = []string{}
	}
	err = as.store.ChangeBilling(ctx, key, func(ctx context.Context, w *store.Writing, p *plans.Customer) error {
		c, line, err := as.standing(ctx, w, p.ID)
		if err == nil && c == nil {
			err = billing.ErrAnonymous
		}
		if err == nil {
			err = pre.Check(c.Account.Written || pre.Given, strconv.FormatInt(c.Account.Change, 10))
		}
		if err != nil {
			return err
		}
		was, ran := c.Account, c.Open != nil
		if err := as.apply(ctx, w, p, c, line, in); err != nil {
			return err
		}
		if a, err = as.show(ctx, w, c); err == nil && c.Account.Change == was.Change {
			err = store.Unchanged()
		}
		if err == nil && ran && c.Open == nil && c.Account.EndsAt != nil { // billing ends before any period that could be closed
			err = events.Write(ctx, w, EndedEvent(c, *c.Account.EndsAt))
		}
		if err != nil {
			return err
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditChange, Target: "customers/" + key + "/billing", Customer: c.ID,
			Before: auditAccount(&was), After: auditAccount(&c.Account),
		})
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// billed reports whether a period is closed or an opening invoice is final. After that, the start and the
// trial cannot change.
const billed = `
	SELECT EXISTS (SELECT FROM periods WHERE customer_id = $1)
	    OR EXISTS (SELECT FROM invoices WHERE customer_id = $1 AND kind = 'opening' AND status NOT IN ('draft', 'void'))`

const sellerThere = `SELECT EXISTS (SELECT FROM sellers WHERE key = $1)`

// apply writes an account under the lock of the customer's billing.
func (as *Accounts) apply(ctx context.Context, w *store.Writing, p *plans.Customer, c *Customer, line *timeline.Timeline, in *AccountInput) error {
	a := c.Account
	a.Seller, a.Buyer, a.Taxes, a.DueDays, a.Written = in.Seller, in.Buyer, in.Taxes, in.DueDays, true
	a.OrderReference, a.Notes = in.OrderReference, in.Notes
	if in.AfterEnd != nil {
		a.AfterEnd = *in.AfterEnd
	}
	var standing, seller bool
	if err := errors.Join(w.QueryRow(ctx, billed, c.ID).Scan(&standing), w.QueryRow(ctx, sellerThere, in.Seller).Scan(&seller)); err != nil {
		return err
	}
	if !seller {
		return fault("seller", "no such seller: write it first with PUT /v1/sellers/"+plans.Shorten(in.Seller))
	}
	e := edit{c: c, line: line, account: a}
	from, end := c.known(line)
	if err := e.begin(in, standing); err != nil {
		return err
	}
	if err := e.end(in); err != nil {
		return err
	}
	if err := e.paid(ctx, w); err != nil {
		return err
	}
	if e.ended {
		e.account.KnownFrom, e.account.KnownEnd = from, end
	}
	if reflect.DeepEqual(e.account, c.Account) {
		return nil
	}
	if e.account.Seller != c.Account.Seller {
		if err := as.makeDue(ctx, w, c.ID); err != nil {
			return err
		}
	}
	if !e.moved && !e.ended {
		c.Account = e.account
		return errors.Join(writeAccount(ctx, w, c), as.SetDue(ctx, w, c.ID))
	}
	if err := e.mark(ctx, w); err != nil {
		return err
	}
	c.Account = e.account
	if err := writeAccount(ctx, w, c); err != nil {
		return err
	}
	if err := as.rebound(ctx, w, p, &e); err != nil {
		return err
	}
	return as.SetDue(ctx, w, c.ID)
}

// rebound rewrites the open period after an edit of the account's boundaries. Pending terms begin at the new
// end of the running period, or at the restart of billing.
func (as *Accounts) rebound(ctx context.Context, w *store.Writing, p *plans.Customer, e *edit) error {
	c := e.c
	if err := as.redate(ctx, w, p, e); err != nil {
		return err
	}
	lines, err := Timelines(ctx, w, map[int64]*Customer{c.ID: c})
	if err != nil {
		return err
	}
	e.line = lines[c.ID]
	switch {
	case e.moved:
		return as.first(ctx, w, c, e.line)
	case c.Open != nil:
		return as.reopen(ctx, w, c, false)
	}
	if err := writeCuts(ctx, w, c, e.line); err != nil {
		return err
	}
	if !e.resumed {
		return nil
	}
	c.chain, c.n = c.chain+1, 0
	first, ok := e.line.Resume(c.chain)
	return writeOpen(ctx, w, c, &first, ok, true, true)
}

// redate moves a pending anchor, timezone or interval to the new end of the running period. If billing begins
// again, all pending terms begin at once.
func (as *Accounts) redate(ctx context.Context, w *store.Writing, p *plans.Customer, e *edit) error {
	if e.resumed {
		return w.RestartTerms(ctx, p, *e.account.BreakTo)
	}
	periods := &e.line.Periods
	if periods.Before == nil || periods.From <= e.c.Now {
		return nil
	}
	former := *periods.Before
	former.Cuts = e.account.Cuts([]int64{e.account.StartsAt})
	if _, end := former.Period(e.c.Now); end != periods.From {
		return w.MoveFormer(ctx, p, end)
	}
	return nil
}

const updateAccount = `
	UPDATE billing_accounts SET starts_at = $2, starts_set_at = $3, trial_ends_at = $4, ends_at = $5, ends_with_period = $6,
		break_from = $7, break_to = $8, seller = $9, buyer = $10, taxes = $11, due_days = $12, written = $13, change = $14,
		known_from = $15, known_end = $16, order_reference = $17, notes = $18, after_end = $19
	WHERE customer_id = $1`

// writeAccount writes the account of c with the number of the current change.
func writeAccount(ctx context.Context, w *store.Writing, c *Customer) error {
	a := &c.Account
	a.Change = w.Number
	buyer, badBuyer := json.Marshal(a.Buyer)
	taxes, badTaxes := json.Marshal(a.Taxes)
	if err := errors.Join(badBuyer, badTaxes); err != nil {
		return err
	}
	_, err := w.Exec(ctx, updateAccount, c.ID, a.StartsAt, a.StartsSetAt, a.TrialEndsAt, a.EndsAt, a.EndsWithPeriod,
		a.BreakFrom, a.BreakTo, a.Seller, buyer, taxes, a.DueDays, a.Written, a.Change, a.KnownFrom, a.KnownEnd,
		a.OrderReference, a.Notes, a.AfterEnd)
	return err
}

func sameInstant(a, b *int64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

const startOf = `
	SELECT a.starts_at FROM customers c JOIN billing_accounts a ON a.customer_id = c.id WHERE c.key = $1`

// CheckInstant rejects an adjustment at an instant before the customer's billing began, because usage before
// that start is never billed. A customer without billing has no such limit. The error is model.FieldErrors.
func (as *Accounts) CheckInstant(ctx context.Context, key string, at int64) error {
	start, err := readRow(ctx, as, nil, pgx.RowTo[int64], startOf, key)
	if err == nil && start > at {
		err = fault("at", "is before starts_at of the customer's billing: what was used before is never billed")
	}
	return err
}
