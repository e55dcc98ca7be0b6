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

// MeterTarget is one meter of a customer's plan. Price is nil where the plan has none, and Cap where the
// customer has none in the period that runs.
type MeterTarget struct {
	Meter  plans.Meter
	Target *model.Target
	Price  *plans.Price
	Cap    *plans.Cap
}

// Account is what a customer has at one moment. All of it but the slice Meters is shared, and
// must not be changed.
type Account struct {
	// Plan is the version in force, with the customer's features merged over the plan's.
	// Meters are all meters of the plan: those of its list, then those that only limits name,
	// then those that only prices name.
	Plan      *plans.Plan
	Meters    []MeterTarget
	Clock     *model.TestClock // nil: it lives in PostgreSQL's time
	Anonymous bool

	Suspension *plans.Suspension      // nil: it is not suspended
	Scheduled  *plans.ScheduledChange // nil: no other plan waits
	EndsAt     *int64                 // from here on it is refused what it asks for, µs by its clock; nil: never
}

// Meters returns what a customer has. With a default plan it also returns what an unknown
// customer would have, and makes none. Errors: plans.ErrUnknownCustomer (also for an archived
// one), and session.ErrUnavailable when the database could not be asked.
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

// MetersIn is Meters of a customer that is there, as a transaction sees it. Nothing of it is remembered.
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

// account is what a customer has by its terms.
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
