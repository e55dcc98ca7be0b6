package invoices

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/rating"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/usage"
)

// Upcoming returns the invoice that the running period would have at its end with the usage so far. Nothing
// is stored. Errors: plans.ErrUnknownCustomer, billing.ErrAnonymous, billing.ErrNoPeriod.
func (is *Invoices) Upcoming(ctx context.Context, key string) (*billing.Invoice, error) {
	t, err := is.upcoming(ctx, key, func(context.Context, pgx.Tx, int64) error { return nil })
	if err != nil {
		return nil, err
	}
	return &t.Result.Invoice, nil
}

// Left reads how many units of each meter a customer may still use before end. It reads within a snapshot.
// end is the end of the running period, µs.
type Left func(ctx context.Context, tx pgx.Tx, end int64) (map[string]int64, error)

// Projection returns the result of Upcoming, and the invoice that would result if usage continued at the
// period's pace so far, see assembly.Input.Projected. projected is nil if the period is too young or if that
// invoice would be held. Both invoices show the same instant.
func (is *Invoices) Projection(ctx context.Context, key string, read Left) (soFar, projected *billing.Invoice, err error) {
	var left map[string]int64
	t, err := is.upcoming(ctx, key, func(ctx context.Context, tx pgx.Tx, end int64) (err error) {
		left, err = read(ctx, tx, end)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	soFar = &t.Result.Invoice
	in, ok := t.in.Projected(t.c.Now, left)
	if !ok || soFar.Held != "" {
		return soFar, nil, nil
	}
	made, err := assembly.Assemble(in)
	if err != nil || made.Invoice.Held != "" {
		return soFar, nil, err
	}
	return soFar, &made.Invoice, nil
}

// upcoming assembles the invoice of the running period. look reads more data within the same snapshot and
// receives the period's end.
func (is *Invoices) upcoming(ctx context.Context, key string, look func(ctx context.Context, tx pgx.Tx, end int64) error) (t *Task, err error) {
	err = is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		now, err := is.accounts.Now(ctx)
		if err != nil {
			return err
		}
		c, p, line, err := is.running(ctx, tx, key, now)
		if err != nil {
			return err
		}
		t = PeriodTask(c, line, p, 0)
		if err := is.Assemble(ctx, tx, []*Task{t}); err != nil {
			return err
		}
		if t.Err != nil {
			return t.Err
		}
		return look(ctx, tx, p.End)
	})
	return t, err
}

// running returns the period that contains the customer's present instant. The open period may have ended
// without being closed yet. now is PostgreSQL's time. With billing.ErrNoPeriod, running still returns the
// customer if the customer is billed at all.
func (is *Invoices) running(ctx context.Context, q postgres.Querier, key string, now int64) (*accounts.Customer, *billing.Period, *timeline.Timeline, error) {
	id, archived, err := accounts.Find(ctx, q, key)
	if err != nil {
		return nil, nil, nil, err
	}
	customers, err := accounts.ReadCustomers(ctx, q, []int64{id}, now)
	if err != nil {
		return nil, nil, nil, err
	}
	c := customers[id]
	if archived || c == nil || c.Open == nil || c.Now < c.Open.Start {
		return c, nil, nil, billing.ErrNoPeriod
	}
	lines, err := accounts.Timelines(ctx, q, customers)
	if err != nil {
		return nil, nil, nil, err
	}
	p, ok, err := lines[id].At(*c.Open, c.Now)
	if err == nil && !ok {
		err = billing.ErrNoPeriod
	}
	return c, &p, lines[id], err
}

// Running contains the terms that price a customer's usage at one instant.
type Running struct {
	// View is the snapshot that all fields were read from, with the running period.
	View quota.View
	// Change is the newest change number of the customer or its clock in the snapshot, or 0 if the customer
	// is not billed. A caller that knows only an older number must read again.
	Change int64

	terms *assembly.Terms // nil if the customer is not billed
}

// Reading runs do on the stored state of a customer at one instant. All reads of do from the view belong to
// the same instant. Billed of the Running is false for a customer without billing: before starts_at, after
// ends_at, anonymous or unknown.
func (is *Invoices) Reading(ctx context.Context, key string, do func(ctx context.Context, r *Running) error) error {
	return is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		r := &Running{View: quota.View{From: tx}}
		var err error
		if r.View.Now, err = is.accounts.Now(ctx); err != nil {
			return err
		}
		c, p, _, err := is.running(ctx, tx, key, r.View.Now)
		if c != nil {
			r.Change = max(c.Change, c.ClockSet)
		}
		switch {
		case err == nil:
			if err := is.price(ctx, tx, r, p); err != nil {
				return err
			}
		case !errors.Is(err, billing.ErrNoPeriod) && !errors.Is(err, billing.ErrAnonymous) && !errors.Is(err, plans.ErrUnknownCustomer):
			return err
		}
		return do(ctx, r)
	})
}

// price sets the terms of the running period.
func (is *Invoices) price(ctx context.Context, q postgres.Querier, r *Running, p *billing.Period) error {
	versions, err := is.accounts.Versions.Get(ctx, q, accounts.VersionsOf(p))
	if err != nil {
		return err
	}
	terms := versions.Terms(p)
	r.terms, r.View.Start, r.View.End = &terms, p.Start, p.End
	return nil
}

// Billed reports whether the customer is billed now.
func (r *Running) Billed() bool { return r.terms != nil }

// Version returns the number of the plan version that prices the running period.
func (r *Running) Version() int { return r.terms.Plan.Version }

// Currency returns the currency of the prices.
func (r *Running) Currency() string { return r.terms.Plan.Document.Currency }

// Held returns the level of a level meter in the running period, assuming that the present level stays until
// the end. It returns nil for a flow meter.
func (r *Running) Held(ctx context.Context, of model.CounterKey) (*rating.Held, error) {
	if !model.IsLevel(of.Meter) {
		return nil, nil
	}
	held, err := usage.Levels(ctx, r.View.From, []usage.Span{{Customer: of.Customer, Meter: of.Meter, Start: r.View.Start, End: r.View.End}})
	if err != nil {
		return nil, err
	}
	return (*rating.Held)(&held[0]), nil
}

// Meter returns the cost of a meter's units in the running period, or of the level in held if held is not
// nil: the included units, the units beyond them, and the amount in minor units. amount is nil if the meter
// has no price or if an invoice would be held.
func (r *Running) Meter(meter plans.Meter, units int64, held *rating.Held) (included, overage int64, amount *int64, err error) {
	if r.terms == nil {
		return 0, 0, nil, nil
	}
	line, priced, err := r.terms.UsageLine(meter, units)
	if held != nil {
		line, priced, err = r.terms.HeldLine(meter, *held)
	}
	if err != nil && !errors.Is(err, rating.ErrTooLarge) {
		return 0, 0, nil, err
	}
	if !priced {
		return 0, max(0, units), nil, nil
	}
	overage = max(0, line.Quantity-line.Included)
	if err == nil {
		amount = &line.AmountMinor
	}
	return line.Included, overage, amount, nil
}
