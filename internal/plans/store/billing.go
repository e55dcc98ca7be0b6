package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// Billing contains the functions that keep the billing of customers consistent with admin writes. They
// are passed as functions because the billing package depends on this package.
type Billing struct {
	// Lock locks a customer's billing. Lock is the first statement of every write of the customer, before
	// the change number is taken. A nil result means that the customer is not billed.
	Lock func(ctx context.Context, tx pgx.Tx, key string) (*Open, error)

	// Running returns the prices in force in the running billing period, or nil if no period runs. c is the
	// customer as stored, and now is µs by the customer's clock.
	Running func(ctx context.Context, w *Writing, c *plans.Customer, now int64) (*Running, error)

	// End returns the instant of a scheduled change, which is the end of the running period or the end of
	// the intervals of its base price. End chooses between the two if the request names neither. Errors are
	// the errors that wrap plans.ErrNotSchedulable, and billing.ErrCurrency.
	End func(ctx context.Context, w *Writing, customer int64, s *Scheduled) (at int64, err error)

	// Changed applies a change to billing. Changed runs in the transaction of the change, after the
	// customer, its terms and its former periods were written. An error rolls back the transaction.
	Changed func(ctx context.Context, w *Writing, change *CustomerChange) error

	// ClockSet applies a new instant of a test clock to billing, in the transaction that sets the clock.
	ClockSet func(ctx context.Context, w *Writing, clock string) error
}

// Open is the open billing period of a customer whose billing the transaction has locked. If there is no
// open period, Start and End are 0.
type Open struct {
	Start, End int64
	// Begun is true if the prices of the period are fixed. For the first period, Begun is false before the
	// period's start.
	Begun  bool
	Meters []string // keys of the meters that have a price in the period
}

// Running describes the prices in force in the running billing period.
type Running struct {
	Plan    string // key of the plan
	Version int
	// OtherPrices is true if other customer-specific prices apply from the next period on.
	OtherPrices bool
	// OtherBase is true if an older version's base price still applies for some intervals.
	OtherBase bool
}

// The kinds of a CustomerChange.
const (
	CustomerNamed    = "named" // created, or anonymous until this write
	CustomerWritten  = "written"
	CustomerArchived = "archived" // also for an erased customer
)

// CustomerChange is a change of a customer to which billing may have to respond.
type CustomerChange struct {
	What     string
	Customer *plans.Customer // state after the change
	Now      int64           // time of the customer's clock, µs
	From     int64           // start of the first period that is priced under the new terms
	// Cut is the instant at which the change ended the running period. Cut is set if the change mode is now,
	// or if the customer was archived.
	Cut *int64
	// Terms is true if the plan, the pinned version, the timezone or the anchor has changed.
	Terms bool
}

// WriteCustomer runs a Write about a customer. WriteCustomer first locks the customer's billing and
// writes a scheduled change that applies already. w.Open is then the open billing period.
func (s *Store) WriteCustomer(ctx context.Context, key string, do func(ctx context.Context, w *Writing) error) error {
	first := func(ctx context.Context, w *Writing) (err error) {
		if s.options.Billing != nil {
			w.billing = s.options.Billing
			w.Open, err = s.options.Billing.Lock(ctx, w.Tx, key)
		}
		return err
	}
	return s.write(ctx, KindCustomer, key, first, func(ctx context.Context, w *Writing) error {
		err := w.lift(ctx, key)
		if err == nil {
			err = do(ctx, w)
		}
		if err == nil {
			err = w.lay(ctx)
		}
		if err == nil {
			err = w.tellDropped(ctx)
		}
		if err == nil && w.audit != nil {
			err = w.Audit(ctx, w.audit())
		}
		return err
	})
}

const touchCustomer = `UPDATE customers SET change = $2 WHERE id = $1`

// changeCustomer runs do in a Write about a customer that is not archived, after a scheduled change that
// applies already has been written. changeCustomer stores the change number with the customer, so that
// counters recognize the customer's limits as newer.
func (s *Store) changeCustomer(ctx context.Context, key string, do func(context.Context, *Writing, *plans.Customer) error) error {
	if !plans.ValidCustomerKey(key) {
		return plans.ErrUnknownCustomer
	}
	return s.Write(ctx, KindCustomer, key, func(ctx context.Context, w *Writing) error {
		if _, _, err := w.scheduled(ctx, key); err != nil {
			return err
		}
		return w.changeOf(ctx, key, do)
	})
}

// ChangeBilling runs do in a WriteCustomer about a customer that is not archived, and stores the change
// number with the customer. Errors are plans.ErrUnknownCustomer, plans.ErrArchived, and the errors of do.
func (s *Store) ChangeBilling(ctx context.Context, key string, do func(context.Context, *Writing, *plans.Customer) error) error {
	if !plans.ValidCustomerKey(key) {
		return plans.ErrUnknownCustomer
	}
	return s.WriteCustomer(ctx, key, func(ctx context.Context, w *Writing) error { return w.changeOf(ctx, key, do) })
}

func (w *Writing) changeOf(ctx context.Context, key string, do func(context.Context, *Writing, *plans.Customer) error) error {
	c, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
	if err == nil && c.ArchivedAt != nil {
		err = plans.ErrArchived
	}
	if err == nil {
		err = do(ctx, w, c)
	}
	if err == nil {
		_, err = w.Exec(ctx, touchCustomer, c.ID, w.Number)
	}
	return err
}
