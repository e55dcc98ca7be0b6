package store

import (
	"context"
	"strconv"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/plans"
)

// tell writes an event about a customer, in the transaction of the change that the event reports. The
// event's instant is the time of the customer's clock.
func (w *Writing) tell(ctx context.Context, what string, c *plans.Customer, data client.EventData) error {
	return w.tellAt(ctx, what, c, w.InstantOf(c), data)
}

// tellAt is tell with another instant, µs by the customer's clock.
func (w *Writing) tellAt(ctx context.Context, what string, c *plans.Customer, at int64, data client.EventData) error {
	e := events.Event{Type: what, At: at, Customer: c.ID, Data: data}
	if c.TestClock != nil {
		e.TestClock = *c.TestClock
	}
	return events.Write(ctx, w, e)
}

// tellPlan writes an event if a customer's plan or plan version changes from an instant on. It writes no
// event if both are the same as before.
func (w *Writing) tellPlan(ctx context.Context, old, c *plans.Customer, at int64) error {
	if old.Plan == c.Plan && old.EffectiveVersion == c.EffectiveVersion {
		return nil
	}
	return w.tellAt(ctx, events.CustomerPlanChanged, c, at, client.EventData{
		Plan: c.Plan, PlanVersion: c.EffectiveVersion, Previous: &client.EventPlan{Plan: old.Plan, PlanVersion: old.EffectiveVersion},
	})
}

// tellDropped writes an event if the write has dropped a scheduled change.
func (w *Writing) tellDropped(ctx context.Context) error {
	if w.lifted == nil || w.laid != nil {
		return nil
	}
	c, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomerByID, w.liftedOf)
	if err != nil {
		return err
	}
	return w.tell(ctx, events.CustomerChangeDropped, c, client.EventData{
		Plan: w.lifted.Plan, PlanVersion: w.lifted.PlanVersion, PlanAt: &w.lifted.At,
	})
}

// EventFilter selects events. A zero field does not restrict the selection.
type EventFilter struct {
	After    int64  // only events with a higher id
	Type     string // one of events.Types
	Customer string // key of the customer
}

const kindEvents = "events"

func isEventID(text string) bool {
	id, err := strconv.ParseInt(text, 10, 64)
	return err == nil && id > 0 && strconv.FormatInt(id, 10) == text
}

// Events returns events in the order of their ids. A client that continues after the last id misses no
// event. Errors: plans.ErrUnknownCustomer, and model.FieldErrors for an invalid page.
func (s *Store) Events(ctx context.Context, f EventFilter, page plans.Page) (*plans.List[events.Shown], error) {
	limit, position, err := OpenPage(page, kindEvents, isEventID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	from := events.Filter{After: f.After, Type: f.Type}
	if seen, err := strconv.ParseInt(position, 10, 64); err == nil {
		from.After = max(f.After, seen)
	}
	if f.Customer != "" {
		c, err := s.GetCustomer(ctx, f.Customer)
		if err != nil {
			return nil, err
		}
		from.Customer = c.ID
	}
	found, err := events.Read(ctx, s.pool, from, limit+1)
	if err != nil {
		return nil, Classify(err)
	}
	return Paged(found, limit, kindEvents, func(e events.Shown) string { return strconv.FormatInt(e.ID, 10) }), nil
}
