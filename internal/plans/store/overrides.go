package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// putOverride returns whether the override is new. The check works because a statement's snapshot does
// not include the statement's own insert.
const putOverride = `
	INSERT INTO overrides (customer_id, limit_name, "limit", burst, expires_at, change, reason) VALUES ($1, $2, $3, $4, $5, $6, $7)
	ON CONFLICT (customer_id, limit_name) DO UPDATE SET "limit" = excluded."limit", burst = excluded.burst,
		expires_at = excluded.expires_at, change = excluded.change, reason = excluded.reason
	RETURNING NOT EXISTS (SELECT FROM overrides WHERE customer_id = $1 AND limit_name = $2)`

// PutOverride creates or replaces a customer's override of a limit of the plan version in force. created
// is true for a new override. The override's numbers are checked like the numbers of that version. The
// customer's entity tag changes.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, plans.ErrUnknownLimit, and model.FieldErrors about
// limit, burst and expires_at.
func (s *Store) PutOverride(ctx context.Context, customer, limit string, in plans.OverrideInput) (o *plans.Override, created bool, err error) {
	err = s.changeCustomer(ctx, customer, func(ctx context.Context, w *Writing, c *plans.Customer) error {
		stored, err := w.checkOverride(ctx, c, limit, &in)
		if err != nil {
			return err
		}
		before, err := w.auditedOverride(ctx, c.ID, limit)
		if err != nil {
			return err
		}
		if err := w.keepOverridden(ctx, c, limit, &stored); err != nil {
			return err
		}
		created, err = one(ctx, w, plans.ErrUnknownCustomer, pgx.RowTo[bool], putOverride,
			c.ID, limit, stored.Limit, stored.Burst, stored.ExpiresAt, w.Number, in.Reason)
		if err != nil {
			return err
		}
		o = stored.Show(limit, true, c)
		o.Reason = in.Reason
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditWrite(created), Target: overrideTarget(customer, limit), Customer: c.ID, Before: before,
			After: auditOverride(overrideRow{stored, in.Reason}),
		})
	})
	if err != nil {
		return nil, false, err
	}
	return o, created, nil
}

// checkOverride checks an override against the plan version in force and the customer's clock.
func (w *Writing) checkOverride(ctx context.Context, c *plans.Customer, limit string, in *plans.OverrideInput) (o plans.StoredOverride, err error) {
	plan, err := one(ctx, w, plans.ErrUnknownVersion, scanPlan, getPlanVersion, c.Plan, c.EffectiveVersion)
	if err != nil {
		return o, err
	}
	now := w.Now.UnixMicro()
	if c.Clock != nil {
		now = c.Clock.Now
	}
	return in.Check(plan, limit, now)
}

const deleteOverride = `DELETE FROM overrides WHERE customer_id = $1 AND limit_name = $2`

// DeleteOverride deletes a customer's override, so that the plan's numbers apply to the limit again. The
// customer's entity tag changes. Errors: plans.ErrUnknownCustomer, plans.ErrArchived,
// plans.ErrUnknownOverride.
func (s *Store) DeleteOverride(ctx context.Context, customer, limit string) error {
	return s.changeCustomer(ctx, customer, func(ctx context.Context, w *Writing, c *plans.Customer) error {
		before, err := w.auditedOverride(ctx, c.ID, limit)
		if err != nil {
			return err
		}
		if before == nil {
			return plans.ErrUnknownOverride
		}
		if err := w.keepOverridden(ctx, c, limit, nil); err != nil {
			return err
		}
		if _, err := w.Exec(ctx, deleteOverride, c.ID, limit); err != nil {
			return err
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditDelete, Target: overrideTarget(customer, limit), Customer: c.ID, Before: before,
		})
	})
}

func overrideTarget(customer, limit string) string {
	return "customers/" + customer + "/overrides/" + limit
}

const listOverrides = `
	SELECT o.limit_name, o."limit", o.burst, o.expires_at, o.reason,
		t.now
	FROM overrides o JOIN customers c ON c.id = o.customer_id LEFT JOIN test_clocks t ON t.id = c.test_clock_id
	WHERE o.customer_id = $1 AND o.limit_name > $2 ORDER BY o.limit_name LIMIT $3`

// ListOverrides returns a customer's overrides in the order of the limits' names, including overrides
// without effect. The error for an unknown customer is plans.ErrUnknownCustomer.
func (s *Store) ListOverrides(ctx context.Context, customer string, page plans.Page) (*plans.List[*plans.Override], error) {
	c, err := s.GetCustomer(ctx, customer)
	if err != nil {
		return nil, err
	}
	kind := "override/" + customer
	limit, after, err := OpenPage(page, kind, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	plan, err := s.GetPlanVersion(ctx, c.Plan, c.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, s, func(row pgx.CollectableRow) (*plans.Override, error) {
		return scanOverride(row, plan, c, now.UnixMicro())
	}, listOverrides, limit, c.ID, after)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, kind, func(o *plans.Override) string { return o.Name }), nil
}

// scanOverride reads a row of overrides and determines whether the override has an effect on a plan
// version. The instant is now, µs, or the time of the customer's test clock.
func scanOverride(row pgx.CollectableRow, p *plans.Plan, c *plans.Customer, now int64) (*plans.Override, error) {
	var o plans.StoredOverride
	var name, reason string
	var clock *int64 // time of the customer's test clock
	if err := row.Scan(&name, &o.Limit, &o.Burst, &o.ExpiresAt, &reason, &clock); err != nil {
		return nil, err
	}
	if clock != nil {
		now = *clock
	}
	shown := o.Show(name, o.InForce(p, name, now), c)
	shown.Reason = reason
	return shown, nil
}
