package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/quota/session"
)

// maxWelcomes limits the customers that a node creates at once, because each creation uses a connection
// of the pool for one insert. Further first hits get ErrBusy.
const maxWelcomes = 64

// welcome creates the customer of a first hit, anonymous and on the default plan, and returns its terms.
// If the customer was created in the meantime, welcome returns the terms of the existing customer. A hit
// on a meter outside the plan creates no customer.
//
// The insert takes no change number and no lock that admin writes wait for, so a flood of new customers
// delays nobody. However, other nodes do not learn of the customer. With a default plan, a node must
// therefore never cache that a customer does not exist, see Catalog.keep.
//
// Errors: plans.ErrUnknownCustomer (for the key of an archived customer, a reserved key, or as a
// plans.NoDefaultPlanError), plans.ErrNotInPlan, plans.ErrUnknownMeter, session.ErrBusy,
// session.ErrUnavailable, session.ErrNoSession.
func (c *Catalog) welcome(ctx context.Context, customer, meter string) (*terms, error) {
	if !mayBeMade(customer) {
		return nil, plans.ErrUnknownCustomer
	}
	for range maxAttempts {
		m := c.memory.Load()
		v, err := c.defaultVersion(ctx, m)
		if err != nil {
			return nil, err
		}
		if v.meters[meter] == nil {
			if _, err := c.meter(ctx, meter); err != nil {
				return nil, err
			}
			return nil, plans.ErrNotInPlan
		}
		done, err := c.insertAnonymous(ctx, m, customer, v)
		switch {
		case err != nil:
			return nil, err
		case done.archived:
			return nil, plans.ErrUnknownCustomer
		case !done.current:
			continue // the plan has a newer version, which this node has now learned
		}
		// The customer may still be unknown, because this call joined a read that began before the insert, or
		// because the customer has been forgotten already. Then try again.
		t, err := c.terms(ctx, customer)
		if !errors.Is(err, plans.ErrUnknownCustomer) {
			return t, err
		}
	}
	return nil, errOvertaken
}

// defaultVersion returns the newest version of the default plan, which must have no prices. The plan is
// looked up each time, because it may be written later.
func (c *Catalog) defaultVersion(ctx context.Context, m *memory) (*version, error) {
	plan, err := c.plan(ctx, m, c.options.DefaultPlan)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &plans.NoDefaultPlanError{Plan: c.options.DefaultPlan}
	}
	if err != nil {
		return nil, err
	}
	v, err := c.version(ctx, m, versionKey{plan.id, plan.latest})
	if err == nil && (len(v.plan.Prices) > 0 || v.plan.BasePriceMinor != 0 || v.plan.MinimumMinor != 0) {
		return nil, &plans.NoDefaultPlanError{Plan: c.options.DefaultPlan, Priced: true}
	}
	return v, err
}

// CheckDefaultPlan returns an error that explains why the default plan cannot create customers now. The
// result is nil if the plan can, or if there is no default plan.
func (c *Catalog) CheckDefaultPlan(ctx context.Context) error {
	if c.options.DefaultPlan == "" {
		return nil
	}
	_, err := c.defaultVersion(ctx, c.memory.Load())
	return err
}

// makeCustomer stores the newest change number of the statement's snapshot with the customer. This number
// is at least the plan's number, and at most the number of any later write of the customer.
const makeCustomer = `
	WITH plan AS (
		SELECT p.id FROM plans p WHERE p.key = $2 AND p.latest_version = $3
	), made AS (
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change, anonymous)
		SELECT $1, '', plan.id, $3, 'UTC', $4, (SELECT number FROM change_number), true FROM plan
		WHERE NOT EXISTS (SELECT FROM customers WHERE key = $1)
		ON CONFLICT (key) DO NOTHING
	)
	SELECT EXISTS (SELECT FROM plan), coalesce((SELECT archived_at IS NOT NULL FROM customers WHERE key = $1), false)`

type made struct {
	current  bool // the plan's version was still the newest
	archived bool // the key belongs to an archived customer
}

// insertAnonymous inserts the customer unless it exists. Simultaneous callers share one insert.
func (c *Catalog) insertAnonymous(ctx context.Context, m *memory, customer string, v *version) (made, error) {
	return fly(ctx, c.options.Within, &m.flights, "welcome "+customer, func(ctx context.Context) (done made, err error) {
		select {
		case c.welcomes <- struct{}{}:
			defer func() { <-c.welcomes }()
		default:
			return done, fmt.Errorf("%w: %d new customers are being made already", session.ErrBusy, maxWelcomes)
		}
		periods, err := c.newPeriods(ctx)
		if err != nil {
			return done, err
		}
		err = c.pool.QueryRow(ctx, makeCustomer, customer, v.plan.Key, v.plan.Version, periods.Anchor.String()).
			Scan(&done.current, &done.archived)
		if err == nil && !done.current {
			_, err = c.poll(ctx)
		}
		return done, err
	})
}
