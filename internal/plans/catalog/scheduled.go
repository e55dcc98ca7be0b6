package catalog

import (
	"context"
	"sort"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// onPlan says what plan a customer is on.
type onPlan struct {
	plan   string
	pinned int // the version, 0: none
	joined int // customers.joined_version
}

// scheduled is another plan that a customer is on from an instant on, µs by its clock. It counts there
// without a write. change wrote it.
type scheduled struct {
	onPlan
	at, change int64
}

// counts reports whether the plan counts at what the customer's clock shows. A test clock that showed
// at once may be set back; the plan stays.
func (s *scheduled) counts(now int64, clock *clockEntry) bool {
	return s != nil && (now >= s.at || clock != nil && clock.history.Reached(s.at, s.change) > 0)
}

// scheduled is the change of plan that waits beside some terms, nil for none.
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

// schedule tells a target of the customer's other plan: of the one that is to come, or that it is of.
func (t *terms) schedule(target *model.Target, meter int32) {
	switch s := t.entry.scheduled; {
	case s == nil:
	case t.before == nil:
		target.SetPlanChange(0, s.at, t.nextLimits(meter))
	default:
		target.SetPlanChange(s.at, 0, nil)
	}
}

// nextLimits are the limits of a meter from the scheduled change on; nil: they could not be read.
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

// changedRates are a limit's own rates, as the scheduled change leaves them once it is settled.
func (t *terms) changedRates(limit string, own *plans.OwnRates, plan model.Rates, clock plans.ClockHistory) *plans.OwnRates {
	e, s := t.entry, t.entry.scheduled
	number, before := clock.Counts(s.at, s.change), t.before.editions
	if clock != nil { // later versions never counted for the customer
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
