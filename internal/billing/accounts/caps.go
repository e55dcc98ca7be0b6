package accounts

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// Cap is the maximum cost of a meter for a customer in a billing period.
type Cap struct {
	Meter       string
	AmountMinor int64
	// Units is the number of units that the amount allows in the running period, or in the first period if
	// none runs yet. If Units is nil, Reason contains the cause.
	Units  *int64
	Reason string // CapNoBound or CapNoPeriod
}

// Reasons why a cap has no number of units.
const (
	CapNoBound  = "no-bound"  // no number of units exceeds the cap
	CapNoPeriod = "no-period" // no billing period is open or will follow
)

const readCaps = `
	SELECT customer_id, meter, amount_minor FROM caps WHERE customer_id = ANY ($1) AND ($2 = '' OR meter = $2) ORDER BY customer_id, meter`

// capsOf reads the caps of customers, by customer and in the order of meters. If meter is not "", capsOf
// reads only the caps on that meter.
func capsOf(ctx context.Context, q postgres.Querier, customers []int64, meter string) (map[int64][]*Cap, error) {
	all := make(map[int64][]*Cap)
	var customer int64
	var c Cap
	err := postgres.ForEach(ctx, q, []any{&customer, &c.Meter, &c.AmountMinor}, func() error {
		found := c
		found.Reason = CapNoPeriod
		all[customer] = append(all[customer], &found)
		return nil
	}, readCaps, customers, meter)
	return all, err
}

// capPeriods is the number of billing periods that CapPeriods returns for a customer: the running period and
// the next ones. So the end of a period needs no read.
const capPeriods = 3

// clockCapPeriods is the number of billing periods for a customer on a test clock. It is larger than
// capPeriods because a counter keeps its time even if the test clock is set back by years.
const clockCapPeriods = 36

// periodsFrom returns periods of a timeline, at most as many as most. The first is the running period or, if no
// period runs yet, the first period of the timeline.
func periodsFrom(c *Customer, line *timeline.Timeline, most int) (all []billing.Period, err error) {
	if c.Open == nil {
		return nil, nil
	}
	open := *c.Open
	if c.toBegin { // the prices of the period may have changed since it was written
		again, ok := line.Again(c.Open, true)
		if !ok {
			return nil, nil
		}
		open = again
	}
	p, ok, err := line.At(open, max(c.Now, open.Start))
	if errors.Is(err, timeline.ErrFar) {
		return nil, nil
	}
	for ; err == nil && ok && len(all) < most; p, ok = line.Next(&p) {
		all = append(all, p)
	}
	return all, err
}

// pricedPeriods returns the terms of the periods that periodsFrom returns.
func (h *Hooks) pricedPeriods(ctx context.Context, q postgres.Querier, c *Customer, line *timeline.Timeline, most int) (all []assembly.Terms, err error) {
	periods, err := periodsFrom(c, line, most)
	if err != nil {
		return nil, err
	}
	var keys []VersionKey
	for i := range periods {
		keys = append(keys, VersionsOf(&periods[i])...)
	}
	versions, err := h.Versions.Get(ctx, q, keys)
	if err != nil {
		return nil, err
	}
	for i := range periods {
		all = append(all, versions.Terms(&periods[i]))
	}
	return all, nil
}

// CapPeriods returns a customer's caps for the running period and the periods after it, from the current
// state of the database. A customer without billing has no caps.
func (h *Hooks) CapPeriods(ctx context.Context, q postgres.Querier, customer int64) (all []plans.CapPeriod, err error) {
	now, err := h.Now(ctx)
	if err != nil {
		return nil, err
	}
	caps, err := capsOf(ctx, q, []int64{customer}, "")
	if err != nil || len(caps) == 0 {
		return nil, err
	}
	customers, err := ReadCustomers(ctx, q, []int64{customer}, now)
	if err != nil || customers[customer] == nil {
		return nil, err
	}
	lines, err := Timelines(ctx, q, customers)
	if err != nil {
		return nil, err
	}
	most := capPeriods
	if customers[customer].Clock != "" {
		most = clockCapPeriods
	}
	terms, err := h.pricedPeriods(ctx, q, customers[customer], lines[customer], most)
	if err != nil {
		return nil, err
	}
	for i := range terms {
		of := &terms[i].Period
		p := plans.CapPeriod{Start: of.Start, End: of.End, Begun: i == 0 && of.N > 0, Caps: make(map[string]plans.Cap)}
		for _, c := range caps[customer] {
			units, priced, err := terms[i].Cap(c.Meter, c.AmountMinor)
			if err != nil {
				return nil, err
			}
			if priced {
				p.Caps[c.Meter] = plans.Cap{AmountMinor: c.AmountMinor, Units: units}
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// measure sets the number of units of each cap.
func (h *Hooks) measure(ctx context.Context, q postgres.Querier, c *Customer, line *timeline.Timeline, caps []*Cap) error {
	terms, err := h.pricedPeriods(ctx, q, c, line, 1)
	if err != nil || len(terms) == 0 {
		return err
	}
	for _, one := range caps {
		if one.Units, _, err = terms[0].Cap(one.Meter, one.AmountMinor); err != nil {
			return err
		}
		if one.Reason = ""; one.Units == nil {
			one.Reason = CapNoBound
		}
	}
	return nil
}

// Caps returns the caps of a customer, by meter. Errors: plans.ErrUnknownCustomer, billing.ErrAnonymous.
func (as *Accounts) Caps(ctx context.Context, key string) ([]*Cap, error) {
	return as.caps(ctx, key, "")
}

// Cap returns a customer's cap on one meter, or billing.ErrUnknownCap.
func (as *Accounts) Cap(ctx context.Context, key, meter string) (*Cap, error) {
	caps, err := as.caps(ctx, key, meter)
	if err == nil && len(caps) == 0 {
		err = billing.ErrUnknownCap
	}
	if err != nil {
		return nil, err
	}
	return caps[0], nil
}

func (as *Accounts) caps(ctx context.Context, key, meter string) (caps []*Cap, err error) {
	now, err := as.Now(ctx)
	if err != nil {
		return nil, err
	}
	err = as.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		id, archived, err := Find(ctx, tx, key)
		if err != nil {
			return err
		}
		all, err := capsOf(ctx, tx, []int64{id}, meter)
		if caps = all[id]; err != nil || len(caps) == 0 || archived {
			return err
		}
		customers, err := ReadCustomers(ctx, tx, []int64{id}, now)
		if err != nil || customers[id] == nil {
			return err
		}
		lines, err := Timelines(ctx, tx, customers)
		if err != nil {
			return err
		}
		return as.measure(ctx, tx, customers[id], lines[id], caps)
	})
	return caps, err
}

const putCap = `
	INSERT INTO caps (customer_id, meter, amount_minor) VALUES ($1, $2, $3)
	ON CONFLICT (customer_id, meter) DO UPDATE SET amount_minor = excluded.amount_minor`

const deleteCap = `DELETE FROM caps WHERE customer_id = $1 AND meter = $2`

// PutCap limits the cost of a meter for a customer in a billing period, in minor units. created reports
// whether the meter had no cap before.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, billing.ErrAnonymous, model.FieldErrors.
func (as *Accounts) PutCap(ctx context.Context, key, meter string, amount int64) (is *Cap, created bool, err error) {
	if amount < 0 || amount > billing.MaxMinor {
		return nil, false, fault("amount_minor", "is required: from 0 to 999999999999999, in minor units")
	}
	err = as.changeCap(ctx, key, meter, func(ctx context.Context, w *store.Writing, of *plans.Customer, c *Customer, line *timeline.Timeline, old *Cap) error {
		if err := as.capped(ctx, w, c, line, of, meter); err != nil {
			return err
		}
		created, is = old == nil, &Cap{Meter: meter, AmountMinor: amount, Reason: CapNoPeriod}
		if err := as.measure(ctx, w, c, line, []*Cap{is}); err != nil {
			return err
		}
		if old != nil && old.AmountMinor == amount {
			return store.Unchanged()
		}
		if _, err := w.Exec(ctx, putCap, c.ID, meter, amount); err != nil {
			return err
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditWrite(created), Target: capTarget(key, meter), Customer: c.ID, Before: auditCap(old), After: auditCap(is),
		})
	})
	if err != nil {
		return nil, false, err
	}
	return is, created, nil
}

// DeleteCap removes a cap. Errors: plans.ErrUnknownCustomer, plans.ErrArchived, billing.ErrAnonymous,
// billing.ErrUnknownCap.
func (as *Accounts) DeleteCap(ctx context.Context, key, meter string) error {
	return as.changeCap(ctx, key, meter, func(ctx context.Context, w *store.Writing, _ *plans.Customer, c *Customer, _ *timeline.Timeline, old *Cap) error {
		if old == nil {
			return billing.ErrUnknownCap
		}
		if _, err := w.Exec(ctx, deleteCap, c.ID, meter); err != nil {
			return err
		}
		return w.Audit(ctx, plans.Audited{Action: plans.AuditDelete, Target: capTarget(key, meter), Customer: c.ID, Before: auditCap(old)})
	})
}

// changeCap runs do in a write of a customer. old is the meter's current cap, or nil if the meter has no cap.
func (as *Accounts) changeCap(ctx context.Context, key, meter string,
	do func(ctx context.Context, w *store.Writing, of *plans.Customer, c *Customer, line *timeline.Timeline, old *Cap) error,
) error {
	return as.store.ChangeBilling(ctx, key, func(ctx context.Context, w *store.Writing, of *plans.Customer) error {
		c, line, err := as.standing(ctx, w, of.ID)
		if err == nil && c == nil {
			err = billing.ErrAnonymous
		}
		if err != nil {
			return err
		}
		caps, err := capsOf(ctx, w, []int64{c.ID}, meter)
		if err != nil {
			return err
		}
		var old *Cap
		if of := caps[c.ID]; len(of) > 0 {
			old = of[0]
		}
		return do(ctx, w, of, c, line, old)
	})
}

const pricedBy = `
	SELECT EXISTS (SELECT FROM plan_versions v JOIN plans p ON p.id = v.plan_id, jsonb_array_elements(v.document -> 'prices') l
		WHERE p.key = $1 AND v.version = $2 AND l ->> 'meter' = $3)`

// capped checks that a meter can have a cap. The meter must be a flow meter and must have a price now or from
// the next period on.
func (as *Accounts) capped(ctx context.Context, w *store.Writing, c *Customer, line *timeline.Timeline, of *plans.Customer, meter string) error {
	ids, err := store.MeterIDs(ctx, w, []string{meter})
	if err != nil {
		return err
	}
	id, declared := ids[meter]
	switch {
	case !declared:
		return fault("meter", "no such meter: declare it first with PUT /v1/meters/"+plans.Shorten(meter))
	case id < 0:
		return fault("meter", "is a level meter, which counts what is held: a cap is for a meter that counts what passes")
	}
	terms, err := as.pricedPeriods(ctx, w, c, line, 2)
	if err != nil {
		return err
	}
	for i := range terms {
		if _, priced, err := terms[i].Cap(meter, math.MaxInt64/4); priced || err != nil {
			return err
		}
	}
	var priced bool
	if err := w.QueryRow(ctx, pricedBy, of.Plan, of.EffectiveVersion, meter).Scan(&priced); err != nil {
		return err
	}
	if !priced {
		return fault("meter", "has no price: a cap is what a meter may cost. Give it a price in the plan, or with PUT /v1/customers/{key}/prices/{meter}")
	}
	return nil
}

func capTarget(customer, meter string) string { return "customers/" + customer + "/caps/" + meter }

type capAudit struct {
	AmountMinor int64 `json:"amount_minor"`
}

func auditCap(c *Cap) any {
	if c == nil {
		return nil
	}
	return capAudit{c.AmountMinor}
}
