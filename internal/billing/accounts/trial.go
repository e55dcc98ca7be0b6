package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// Trial is a simulated change of a customer: a change to another plan or an end of billing.
type Trial struct {
	Plan    string // "" for an end of billing
	Version *int   // the version to which the customer is pinned
	// Change is plans.ChangeNow, plans.ChangeLimitsNow, plans.UntilPeriodEnd or plans.UntilBaseEnd. If Change
	// is "", the default for a write of the customer applies.
	Change string

	EndsAt    *int64 // µs
	PeriodEnd bool   // EndsAt is the end of the running period
	BaseEnd   bool   // EndsAt is the end of the periods that the running base price covers
}

// Waits reports whether the change would be scheduled.
func (t *Trial) Waits() bool {
	return plans.WasScheduled(t.Change)
}

// Try writes a change like the real request, calls look in the same transaction, and rolls the change back.
// at is the instant at which the change takes effect, µs by the customer's clock. In the meantime, other
// admin writes wait, and hits wait if the change ends the customer's period. Errors:
// plans.ErrUnknownCustomer, plans.ErrArchived, billing.ErrAnonymous, and the errors of the write and of look.
func (as *Accounts) Try(ctx context.Context, key string, t *Trial, look func(ctx context.Context, tx pgx.Tx, customer, at int64) error) error {
	c, err := as.store.GetCustomer(ctx, key) // GetCustomer also writes a scheduled change that is due
	switch {
	case err != nil:
		return err
	case c.ArchivedAt != nil:
		return plans.ErrArchived
	case c.Anonymous:
		return billing.ErrAnonymous
	}
	trial := as.store.Trial(func(ctx context.Context, w *store.Writing) error {
		at := w.InstantOf(c)
		switch {
		case w.Cut != nil:
			at = *w.Cut
		case t.Waits() && w.Scheduled != nil:
			at = w.Scheduled.At()
		case t.Plan == "":
			read, err := ReadCustomers(ctx, w, []int64{c.ID}, at)
			if err != nil {
				return err
			}
			if ends := read[c.ID].Account.EndsAt; ends != nil {
				at = *ends
			}
		}
		return look(ctx, w, c.ID, at)
	})
	switch {
	case t.Plan == "":
		return as.tryEnd(ctx, key, t, trial)
	case t.Waits():
		_, _, err = trial.ScheduleChange(ctx, key, t.Plan, t.Version, t.Change)
	default:
		in := c.CustomerInput
		in.Plan, in.PlanVersion, in.Change = t.Plan, t.Version, t.Change
		_, _, err = trial.PutCustomer(ctx, key, in, plans.Precondition{Given: true, Any: true})
	}
	return err
}

// tryEnd writes the customer's account unchanged, except for the end of billing from t.
func (as *Accounts) tryEnd(ctx context.Context, key string, t *Trial, trial *store.Store) error {
	a, err := as.Account(ctx, key)
	if err != nil {
		return err
	}
	in := &AccountInput{
		TrialEndsAt: a.TrialEndsAt, EndsAt: t.EndsAt, PeriodEnd: t.PeriodEnd, BaseEnd: t.BaseEnd,
		Seller: a.Seller, Buyer: a.Buyer, Taxes: a.Taxes, DueDays: a.DueDays, OrderReference: a.OrderReference, Notes: a.Notes,
	}
	_, err = New(trial, as.Hooks).PutAccount(ctx, key, in, plans.Precondition{Given: true, Any: true})
	return err
}
