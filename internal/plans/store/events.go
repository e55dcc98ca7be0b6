package store

import (
	"context"
	"strconv"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/plans"
)

// tell writes an event about a customer in the transaction of what it tells of, at what the
// customer's clock shows.
func (w *Writing) tell(ctx context.Context, what string, c *plans.Customer, data client.EventData) error {
	return w.tellAt(ctx, what, c, w.InstantOf(c), data)
}

// tellAt is tell for what happened at another instant, µs by the customer's clock.
func (w *Writing) tellAt(ctx context.Context, what string, c *plans.Customer, at int64, data client.EventData) error {
	e := events.Event{Type: what, At: at, Customer: c.ID, Data: data}
	if c.TestClock != nil {
		e.TestClock = *c.TestClock
	}
	return events.Write(ctx, w, e)
}

// tellPlan tells of another plan, or another version of it, that counts for a customer from an instant
// on. A customer that is on what it was on before has no such event.
func (w *Writing) tellPlan(ctx context.Context, old, c *plans.Customer, at int64) error {
	if old.Plan == c.Plan && old.EffectiveVersion == c.EffectiveVersion {
		return nil
	}
	return w.tellAt(ctx, events.CustomerPlanChanged, c, at, client.EventData{
		Plan: c.Plan, PlanVersion: c.EffectiveVersion, Previous: &client.EventPlan{Plan: old.Plan, PlanVersion: old.EffectiveVersion},
	})
}

// tellDropped tells of the scheduled change that a write has taken away, if it has.
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

// EventFilter chooses events. A zero field chooses all.
type EventFilter struct {
	After    int64  // those with a higher id
	Type     string // one of events.Types
	Customer string // key
}

const kindEvents = "events"

func isEventID(text string) bool {
	id, err := strconv.ParseInt(text, 10, 64)
	return err == nil && id > 0 && strconv.FormatInt(id, 10) == text
}

// Events returns what happened, in the order of the ids. Whoever asks again after the last id misses
// none. Errors: plans.ErrUnknownCustomer, model.FieldErrors for a wrong page.
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
