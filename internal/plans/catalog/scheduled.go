package catalog

import (
	"context"
	"sort"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// onPlan contains the plan of a customer, its pinned version, and the version at which it joined.
type onPlan struct {
	plan   string
	pinned int // pinned version; 0 if there is none
	joined int // customers.joined_version
}

// scheduled is another plan that applies to a customer from the instant at on, without a write at that
// instant. at is µs by the customer's clock. change is the number of the change that scheduled the plan.
type scheduled struct {
	onPlan
	at, change int64
}

// counts reports whether the plan applies at the time of the customer's clock. Once a test clock has
// reached the instant at, the plan applies even if the clock is set back.
func (s *scheduled) counts(now int64, clock *clockEntry) bool {
	return s != nil && (now >= s.at || clock != nil && clock.history.Reached(s.at, s.change) > 0)
}

// scheduled returns the change of plan that is pending for some terms, or nil if no change is pending.
func (c *Catalog) scheduled(ctx context.Context, t *terms) (*plans.ScheduledChange, error) {
	s := t.entry.scheduled
	if s == nil || t.before != nil {
		return nil, nil //nolint:nilnil // none waits, which is no error
	}
	plan, err := c.plan(ctx, c.memory.Load(), s.plan)
	if err != nil {
		return nil, err
	}
	return &plans.ScheduledChange{Plan: s.plan, PlanVersion: s.effective(plan), At: time.UnixMicro(s.at).UTC()}, nil
}

// schedule informs a target of the customer's scheduled plan, whether the plan is pending or applies
// already.
func (t *terms) schedule(target *model.Target, meter int32) {
	switch s := t.entry.scheduled; {
	case s == nil:
	case t.before == nil:
		target.SetPlanChange(0, s.at, t.nextLimits(meter))
	default:
		target.SetPlanChange(s.at, 0, nil)
	}
}

// nextLimits returns the limits of a meter after the scheduled change, or nil if they could not be read.
func (t *terms) nextLimits(meter int32) *[]*model.Limit {
	if t.next == nil {
		return nil
	}
	var limits []*model.Limit
	for _, m := range t.next.version.order {
		if m.id == meter {
			limits = t.next.limits(m)
		}
	}
	return &limits
}

// changedRates returns a limit's own rates as they will be stored when the scheduled change is written into the
// customer.
func (t *terms) changedRates(limit string, own *plans.OwnRates, plan model.Rates, clock plans.ClockHistory) *plans.OwnRates {
	e, s := t.entry, t.entry.scheduled
	number, before := clock.Counts(s.at, s.change), t.before.editions
	if clock != nil { // later versions never applied to the customer
		before = before[:sort.Search(len(before), func(i int) bool { return before[i].Change >= number })]
	}
	was := own.RatesOver(plans.PlanRates(before, e.joined, e.pinned, limit, clock), clock).Before(s.at).Latest()
	var override *plans.StoredOverride
	if o, ok := e.overrides[limit]; ok && o.InForce(t.version.plan, limit, s.at) {
		override = &o
	}
	changed, _ := plans.ChangedRates(number, s.at, was, plan, override)
	return changed
}
