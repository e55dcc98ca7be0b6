package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// MeterTarget is one meter of a customer's plan. Price is nil if the plan has no price for the meter. Cap
// is nil if the customer has no cap on the meter in the running period.
type MeterTarget struct {
	Meter  plans.Meter
	Target *model.Target
	Price  *plans.Price
	Cap    *plans.Cap
}

// Account contains the plan and the meters of a customer at one moment. Except for the slice Meters, its
// contents are shared and must not be changed.
type Account struct {
	// Plan is the version in force, with the customer's features merged over the plan's. Meters contains all
	// meters of the plan in this order: the meters of its list, the meters that only limits name, and the
	// meters that only prices name.
	Plan      *plans.Plan
	Meters    []MeterTarget
	Clock     *model.TestClock // nil means PostgreSQL's time
	Anonymous bool

	Suspension *plans.Suspension      // nil if the customer is not suspended
	Scheduled  *plans.ScheduledChange // nil if no change of plan is pending
	EndsAt     *int64                 // instant from which hits are refused, µs by the customer's clock; nil if never
}

// Meters returns the account of a customer. With a default plan, Meters also returns the account that an
// unknown customer would have, without creating the customer. Errors are plans.ErrUnknownCustomer (also
// for an archived customer), and session.ErrUnavailable if the database could not be queried.
func (c *Catalog) Meters(ctx context.Context, customer string) (*Account, error) {
	r, err := c.terms(ctx, customer)
	if c.makes(err) {
		r, err = c.newcomer(ctx, customer)
	}
	if err != nil {
		return nil, err
	}
	return c.account(ctx, r)
}

// MetersIn is Meters for an existing customer as a transaction sees the customer. The result is not
// cached.
func (c *Catalog) MetersIn(ctx context.Context, tx pgx.Tx, customer string) (*Account, error) {
	m := c.memory.Load()
	_, entry, err := m.scanEntry(tx.QueryRow(ctx, entryOfCustomer+` AND c.key = $1`, customer))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, plans.ErrUnknownCustomer
	}
	if err != nil {
		return nil, store.Classify(err)
	}
	now, err := c.options.Now(ctx)
	if err != nil {
		return nil, session.Unreached(err)
	}
	entry.reached.Store(now)
	r, err := c.termsFor(ctx, m, entry)
	if err == nil && entry.capped && c.options.Caps != nil {
		r.caps, err = c.options.Caps(ctx, tx, entry.id)
		r.pickCap()
	}
	if err != nil {
		return nil, err
	}
	return c.account(ctx, r)
}

// account builds the account of a customer from its terms.
func (c *Catalog) account(ctx context.Context, r *terms) (*Account, error) {
	all := make([]MeterTarget, len(r.version.order))
	for i, inPlan := range r.version.order {
		meter, err := c.meter(ctx, inPlan.key)
		if err != nil {
			return nil, fmt.Errorf("meter %s of plan %s: %w", inPlan.key, r.version.plan.Key, err)
		}
		all[i] = MeterTarget{Meter: meter, Target: r.target(inPlan), Price: inPlan.price, Cap: r.capOf(inPlan.key)}
	}
	scheduled, err := c.scheduled(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Account{
		Scheduled: scheduled,
		Plan:      r.shown, Meters: all, Clock: r.testClock(), Anonymous: r.entry.anonymous,
		Suspension: r.entry.suspension, EndsAt: r.entry.ends,
	}, nil
}
