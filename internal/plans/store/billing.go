package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// Billing keeps the billing of customers in step with what admins write of them. Billing is
// built on this package, so it is given as functions.
type Billing struct {
	// Lock locks a customer's billing. It is the first statement of every write of the
	// customer, before the change number is taken. nil: the customer is not billed.
	Lock func(ctx context.Context, tx pgx.Tx, key string) (*Open, error)

	// Running returns what prices the billing period that runs, or nil where none does. c is as
	// it is stored, and now is µs by its clock.
	Running func(ctx context.Context, w *Writing, c *plans.Customer, now int64) (*Running, error)

	// End is when a scheduled change counts: the end of the running period, or that of the intervals of
	// its base price. It chooses between the two where neither was asked for. Errors: those that
	// are plans.ErrNotSchedulable, billing.ErrCurrency.
	End func(ctx context.Context, w *Writing, customer int64, s *Scheduled) (at int64, err error)

	// Changed does what a change means for billing. It runs in the change's transaction, after
	// the customer, its terms and its former periods were written. An error undoes it all.
	Changed func(ctx context.Context, w *Writing, change *CustomerChange) error

	// ClockSet does what another instant of a test clock means for billing, in the same
	// transaction.
	ClockSet func(ctx context.Context, w *Writing, clock string) error
}

// Open is the open billing period of a customer, whose lock the transaction has. Without one
// Start and End are 0.
type Open struct {
	Start, End int64
	// Begun: what prices the period is fixed. The first period has not begun before its start.
	Begun  bool
	Meters []string // that have a price in it
}

// Running is what prices the billing period that runs.
type Running struct {
	Plan    string // key
	Version int
	// OtherPrices: other prices of the customer's own wait for the next period.
	OtherPrices bool
	// OtherBase: the base price is that of an older version, and it goes on for some intervals.
	OtherBase bool
}

// What a CustomerChange was.
const (
	CustomerNamed    = "named" // made, or an anonymous one that was written
	CustomerWritten  = "written"
	CustomerArchived = "archived" // also when it is erased
)

// CustomerChange is a change of a customer that billing may have to follow.
type CustomerChange struct {
	What     string
	Customer *plans.Customer // as it is now
	Now      int64           // what its clock shows, µs
	From     int64           // the start of the first period that the present terms price
	// Cut is where the change ended the running period: change now, or the archiving.
	Cut *int64
	// Terms: the plan, the pinned version, the timezone or the anchor is another.
	Terms bool
}

// WriteCustomer is Write about a customer. It locks the customer's billing first, and settles a scheduled
// change that counts already. w.Open is what is billed then.
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

// changeCustomer runs do in a Write about a customer that is not archived, once a scheduled change that
// counts already is settled. It stores the change's number with the customer, so that counters see its
// limits as newer.
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

// ChangeBilling runs do in a WriteCustomer about a customer that is not archived, and stores
// the change's number with the customer. Errors: plans.ErrUnknownCustomer, plans.ErrArchived,
// and those of do.
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
