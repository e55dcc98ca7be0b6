package store

import (
	"context"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/plans"
)

const (
	suspendCustomer = `UPDATE customers SET suspended_at = $2, suspended_reason = $3 WHERE id = $1`
	resumeCustomer  = `UPDATE customers SET suspended_at = NULL, suspended_reason = '' WHERE id = $1`
)

// Suspend suspends a customer, so that every node refuses its hits and reservations within a second. If
// the customer is suspended already, Suspend replaces the reason but not the instant. The customer's
// entity tag changes.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, and model.FieldErrors about reason.
func (s *Store) Suspend(ctx context.Context, customer, reason string) (is plans.Suspension, err error) {
	if bad := plans.CheckReason(&reason); bad != nil {
		return is, bad
	}
	err = s.changeCustomer(ctx, customer, func(ctx context.Context, w *Writing, c *plans.Customer) error {
		is = plans.Suspension{Reason: reason, At: w.Now}
		was := c.Suspension
		if was != nil {
			if is.At = was.At; was.Reason == reason {
				return errUnchanged
			}
		}
		if _, err := w.Exec(ctx, suspendCustomer, c.ID, is.At, reason); err != nil {
			return err
		}
		if was == nil {
			if err := w.tell(ctx, events.CustomerSuspended, c, client.EventData{}); err != nil {
				return err
			}
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditWrite(was == nil), Target: suspensionTarget(customer), Customer: c.ID, Before: auditSuspension(was), After: auditSuspension(&is),
		})
	})
	return is, err
}

// Resume ends a customer's suspension on every node within a second. The customer's entity tag changes.
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, plans.ErrNotSuspended.
func (s *Store) Resume(ctx context.Context, customer string) error {
	return s.changeCustomer(ctx, customer, func(ctx context.Context, w *Writing, c *plans.Customer) error {
		if c.Suspension == nil {
			return plans.ErrNotSuspended
		}
		if _, err := w.Exec(ctx, resumeCustomer, c.ID); err != nil {
			return err
		}
		if err := w.tell(ctx, events.CustomerResumed, c, client.EventData{}); err != nil {
			return err
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditDelete, Target: suspensionTarget(customer), Customer: c.ID, Before: auditSuspension(c.Suspension),
		})
	})
}

func suspensionTarget(customer string) string { return "customers/" + customer + "/suspension" }
