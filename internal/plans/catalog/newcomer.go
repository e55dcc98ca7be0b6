package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/session"
)

// newPeriods returns the billing periods of an anonymous customer that is created now.
func (c *Catalog) newPeriods(ctx context.Context) (p calendar.Periods, err error) {
	now, err := c.options.Now(ctx)
	if err != nil {
		return p, session.Unreached(err)
	}
	if p.Zone, err = calendar.Location("UTC"); err != nil {
		return p, err
	}
	if p.Anchor, err = calendar.AnchorAt(now, p.Zone); err != nil {
		return p, fmt.Errorf("the database's clock: %w", err)
	}
	return p, nil
}

// newcomer returns the terms that a customer would have if its first hit came now, without creating the
// customer. Errors: plans.ErrUnknownCustomer if that hit would create no customer, and
// session.ErrUnavailable.
func (c *Catalog) newcomer(ctx context.Context, customer string) (*terms, error) {
	if !mayBeMade(customer) {
		return nil, plans.ErrUnknownCustomer
	}
	v, err := c.defaultVersion(ctx, c.memory.Load())
	if _, none := errors.AsType[*plans.NoDefaultPlanError](err); none {
		return nil, plans.ErrUnknownCustomer
	}
	if err != nil {
		return nil, err
	}
	periods, err := c.newPeriods(ctx)
	if err != nil {
		return nil, err
	}
	// No customer has the id 0, so there are no counters of this entry.
	e := &customerEntry{anonymous: true, onPlan: onPlan{plan: v.plan.Key}, periods: periods}
	return newTerms(0, e, 0, &e.onPlan, nil, nil, v, nil), nil
}

// mayBeMade reports whether a hit may create a customer with this key.
func mayBeMade(customer string) bool {
	return plans.ValidCustomerKey(customer) && !strings.HasPrefix(customer, plans.ErasedPrefix)
}
