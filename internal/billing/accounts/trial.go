package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// Trial is a change of a customer that is tried: to another plan, or an end of billing.
type Trial struct {
	Plan    string // "": an end of billing
	Version *int   // that the customer is pinned to
	// Change is plans.ChangeNow, plans.ChangeLimitsNow, plans.UntilPeriodEnd or plans.UntilBaseEnd; "": as
	// in a write of the customer.
	Change string

	EndsAt    *int64 // µs
	PeriodEnd bool   // EndsAt is the end of the running period
	BaseEnd   bool   // EndsAt is the end of the periods that the base price of the running one is for
}

// Waits reports whether the change would be a scheduled one.
func (t *Trial) Waits() bool {
	return plans.WasScheduled(t.Change)
}

// Try writes a change as the request that makes it does, calls look in the transaction that wrote it, and
// undoes it. at is when the change counts, µs by the customer's clock. Meanwhile other writes of admins
// wait, and hits of a customer whose period the change ends. Errors: plans.ErrUnknownCustomer,
// plans.ErrArchived, billing.ErrAnonymous, those of the write, and those of look.
func (as *Accounts) Try(ctx context.Context, key string, t *Trial, look func(ctx context.Context, tx pgx.Tx, customer, at int64) error) error {
	c, err := as.store.GetCustomer(ctx, key) // this writes a change that is due
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

// tryEnd writes the end of a trial, and the account as it is.
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
