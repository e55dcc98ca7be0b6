package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
)

// Customer is a customer's billing, as one statement read it.
type Customer struct {
	ID       int64
	Key      string
	Archived bool
	Erased   bool
	Clock    string // the key of its test clock; "" is PostgreSQL's time
	Now      int64  // what its clock shows
	plan     int32  // the plan that it is on now
	Zone     string // its timezone
	Change   int64  // the number of its newest change
	ClockSet int64  // that of its clock's; 0 without one

	Account    billing.Account
	Open       *billing.Period // nil: billing is over
	chain, n   int             // of the open period, or of the one that would be next
	openingDue bool
}

// OpenStart is the start of the open period: all before it is closed.
func (c *Customer) OpenStart() int64 {
	if c.Open == nil {
		return math.MaxInt64
	}
	return c.Open.Start
}

const customerRows = `
	SELECT o.customer_id, c.key, c.archived_at IS NOT NULL, c.erased_at IS NOT NULL, coalesce(t.key, ''), coalesce(t.now, $2::bigint), c.plan_id,
		c.timezone, c.change, coalesce(t.change, 0),
		a.currency, a.starts_at, a.starts_set_at, a.trial_ends_at, a.ends_at, a.ends_with_period, a.break_from, a.break_to, a.known_from, a.known_end, a.seller, a.buyer, a.taxes,
		a.due_days, a.written, a.change,
		o.chain, o.n, o.start_at, o.end_at, o.full_start, o.full_end, o.known_end, o.trial, o.plan_id, o.version, o.prices, o.opening_due
	FROM unnest($1::bigint[]) AS w (id)
	JOIN open_periods o ON o.customer_id = w.id
	JOIN billing_accounts a ON a.customer_id = w.id
	JOIN customers c ON c.id = w.id
	LEFT JOIN test_clocks t ON t.id = o.clock_id`

// ReadCustomers reads the billing of customers, in no order. now is PostgreSQL's time. Those
// that are not billed are left out.
func ReadCustomers(ctx context.Context, q postgres.Querier, ids []int64, now int64) (map[int64]*Customer, error) {
	b := new(pgx.Batch)
	all := QueueCustomers(b, ids, now)
	return all, postgres.Send(ctx, q, b)
}

// QueueCustomers is ReadCustomers as a statement of a batch.
func QueueCustomers(b *pgx.Batch, ids []int64, now int64) map[int64]*Customer {
	all := make(map[int64]*Customer, len(ids))
	b.Queue(customerRows, ids, now).Query(func(rows pgx.Rows) error {
		read, err := pgx.CollectRows(rows, scanCustomer)
		for _, c := range read {
			all[c.ID] = c
		}
		return err
	})
	return all
}

func scanCustomer(row pgx.CollectableRow) (*Customer, error) {
	c := new(Customer)
	a := &c.Account
	var start, end, fullStart, fullEnd, knownEnd *int64
	var plan *int32
	var number *int
	var currency *string
	var trial bool
	var buyer, taxes, prices []byte
	err := row.Scan(&c.ID, &c.Key, &c.Archived, &c.Erased, &c.Clock, &c.Now, &c.plan,
		&c.Zone, &c.Change, &c.ClockSet,
		&currency, &a.StartsAt, &a.StartsSetAt, &a.TrialEndsAt, &a.EndsAt, &a.EndsWithPeriod, &a.BreakFrom, &a.BreakTo, &a.KnownFrom, &a.KnownEnd, &a.Seller, &buyer, &taxes,
		&a.DueDays, &a.Written, &a.Change,
		&c.chain, &c.n, &start, &end, &fullStart, &fullEnd, &knownEnd, &trial, &plan, &number, &prices, &c.openingDue)
	if err != nil {
		return nil, err
	}
	a.Customer = c.ID
	if currency != nil {
		a.Currency = *currency
	}
	if err = json.Unmarshal(buyer, &a.Buyer); err == nil {
		err = json.Unmarshal(taxes, &a.Taxes)
	}
	if err != nil || start == nil {
		return c, err
	}
	c.Open = &billing.Period{
		Chain: c.chain, N: c.n, Start: *start, End: *end, FullStart: *fullStart, FullEnd: *fullEnd, KnownEnd: *knownEnd,
		Trial: trial, PlanID: *plan, Version: *number,
	}
	c.Open.Prices, err = ReadPrices(prices)
	return c, err
}

// emptyDocument is the length of {}: most customers have no prices of their own.
const emptyDocument = 2

// ReadPrices reads the prices of a customer's own that a period has.
func ReadPrices(raw []byte) (prices map[string]plans.Price, err error) {
	if len(raw) > emptyDocument {
		err = json.Unmarshal(raw, &prices)
	}
	return prices, err
}

const customerByKey = `
	SELECT c.id, c.anonymous, c.archived_at IS NOT NULL FROM customers c WHERE c.key = $1`

// Find returns the id of a customer that is billed. Errors: plans.ErrUnknownCustomer,
// billing.ErrAnonymous.
func Find(ctx context.Context, q postgres.Querier, key string) (id int64, archived bool, err error) {
	if !plans.ValidCustomerKey(key) {
		return 0, false, plans.ErrUnknownCustomer
	}
	var anonymous bool
	switch err = q.QueryRow(ctx, customerByKey, key).Scan(&id, &anonymous, &archived); {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, false, plans.ErrUnknownCustomer
	case err == nil && anonymous:
		return 0, false, billing.ErrAnonymous
	}
	return id, archived, err
}

const lockOne = `SELECT FROM open_periods WHERE customer_id = $1 FOR UPDATE`

// Lock takes the lock of a customer's billing. Only then the customer is read: a statement that
// locks and reads might pair the new row of one table with the old row of another.
func (as *Accounts) Lock(ctx context.Context, tx pgx.Tx, id int64) (*Customer, error) {
	now, err := as.Now(ctx)
	if err != nil {
		return nil, err
	}
	if done, err := tx.Exec(ctx, lockOne, id); err != nil || done.RowsAffected() == 0 {
		if err == nil {
			err = billing.ErrAnonymous
		}
		return nil, err
	}
	read, err := ReadCustomers(ctx, tx, []int64{id}, now)
	if err != nil {
		return nil, err
	}
	if read[id] == nil {
		return nil, billing.ErrAnonymous
	}
	return read[id], nil
}

// OnCustomer runs do under the lock of a customer's billing. Errors: plans.ErrUnknownCustomer,
// plans.ErrArchived, billing.ErrAnonymous.
func (as *Accounts) OnCustomer(ctx context.Context, key string, do func(ctx context.Context, tx pgx.Tx, c *Customer) error) error {
	return as.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		id, _, err := Find(ctx, tx, key)
		if err != nil {
			return err
		}
		c, err := as.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if c.Archived {
			return plans.ErrArchived
		}
		if err := do(ctx, tx, c); err != nil {
			return err
		}
		return as.SetDue(ctx, tx, id)
	})
}

// CheckCurrency refuses another currency than the customer's.
func (c *Customer) CheckCurrency(currency string) error {
	if c.Account.Currency != "" && currency != c.Account.Currency {
		return model.FieldErrors{{Field: "currency", Detail: "must be " + c.Account.Currency + ", the customer's, which is fixed"}}
	}
	return nil
}
