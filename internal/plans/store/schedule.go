package store

import (
	"context"
	"encoding/json"
	"slices"

	"quotad/internal/calendar"
	"quotad/internal/plans"
)

// maxFormer is the greatest number of former periods that are kept. The oldest are dropped first, except for
// periods that an open billing period may need. The time of a dropped period then belongs to the next kept
// period.
const maxFormer = 100

const setFormer = `UPDATE customers SET former_periods = $2 WHERE id = $1`

// reschedule applies a write of a customer to its billing periods. Periods with another anchor, timezone
// or plan interval begin with the next period. If endNow is true and a period that begins now would
// differ from the running period, the running period ends now and the new periods begin at once. old is
// the customer before the write and c after it. runs describes the prices of the running period, or is
// nil if no period is billed.
func (w *Writing) reschedule(ctx context.Context, old, c *plans.Customer, endNow bool, runs *Running) error {
	was, err := w.periodsOf(ctx, old)
	if err != nil {
		return err
	}
	is, err := w.periodsOf(ctx, c)
	if err != nil {
		return err
	}
	same := was.Anchor == is.Anchor && was.Interval == is.Interval && old.Timezone == c.Timezone
	if runs != nil {
		endNow = endNow && w.differs(runs, old, c, &was, &is)
	} else {
		endNow = endNow && (!same || old.Plan != c.Plan || old.EffectiveVersion != c.EffectiveVersion)
	}
	change := &CustomerChange{What: CustomerWritten, Customer: c, Now: w.InstantOf(old), Terms: !sameTerms(old, c)}
	within := change.Now
	if w.Open != nil && w.Open.Begun {
		within = max(within, w.Open.Start) // the period runs, whatever the clock shows now
	}
	if endNow {
		cut, err := w.endRunning(ctx, c.ID, change.Now, was.priced, is.priced)
		if err != nil {
			return err
		}
		change.From, change.Cut, w.Cut = cut, &cut, &cut
	} else {
		_, change.From = was.Period(within)
	}
	if !same || endNow {
		if err := w.keepFormer(ctx, old, c, &was.Periods, within, change); err != nil {
			return err
		}
	}
	return w.recordChange(ctx, change)
}

// waits reports whether a change is pending for the next billing period of an unchanged customer, so that
// it could begin now.
func (w *Writing) waits(ctx context.Context, c *plans.Customer, runs *Running) (bool, error) {
	if runs == nil {
		return false, nil
	}
	p, err := w.periodsOf(ctx, c)
	return err == nil && w.differs(runs, c, c, &p, &p), err
}

// differs reports whether a billing period of c that began now would differ from the running period in
// its prices or its calendar. The running calendar is the calendar of old, or a former calendar until its
// end.
func (w *Writing) differs(runs *Running, old, c *plans.Customer, was, is *pricedPeriods) bool {
	running, now := calendarOf(old, &was.Periods), calendarOf(c, &is.Periods)
	if last := len(old.Former) - 1; last >= 0 && old.Former[last].Until > w.InstantOf(old) {
		running = old.Former[last]
		running.Until = 0
	}
	return running != now || runs.Plan != c.Plan || runs.Version != c.EffectiveVersion || runs.OtherPrices || runs.OtherBase
}

// calendarOf returns the rules of a customer's periods, without an end.
func calendarOf(c *plans.Customer, p *calendar.Periods) plans.FormerPeriods {
	return plans.FormerPeriods{Timezone: c.Timezone, Anchor: c.BillingAnchor, Interval: string(p.Interval.Unit), Count: p.Interval.Count}
}

// recordChange records the terms of a change and notifies billing.
func (w *Writing) recordChange(ctx context.Context, change *CustomerChange) error {
	if change.Terms || change.Cut != nil {
		how := plans.ChangeLimitsNow
		if change.Cut != nil {
			how = plans.ChangeNow
		}
		if err := w.recordTerms(ctx, change.Customer.ID, how, change.From, change.Now); err != nil {
			return err
		}
	}
	if change.Cut != nil {
		if _, err := w.Exec(ctx, advancePrices, change.Customer.ID, w.Number, change.From, change.Now); err != nil {
			return err
		}
	}
	return w.changed(ctx, change)
}

// endRunning ends the running period now. Errors: plans.ErrBeforePeriod.
func (w *Writing) endRunning(ctx context.Context, customer, now int64, priced ...[]string) (cut int64, err error) {
	if w.Open != nil {
		priced = append(priced, w.Open.Meters)
	}
	if w.Open != nil && w.Open.Begun && now < w.Open.Start {
		return 0, plans.ErrBeforePeriod
	}
	return w.Mark(ctx, customer, now, slices.Concat(priced...))
}

// keepFormer stores the old periods as former periods that end when the first new period begins. was
// contains the old periods, and runs is an instant in the running period.
func (w *Writing) keepFormer(ctx context.Context, old, c *plans.Customer, was *calendar.Periods, runs int64, change *CustomerChange) error {
	former := slices.Clone(old.Former)
	last := len(former) - 1
	switch waiting := last >= 0 && former[last].Until > runs; {
	case waiting && change.Cut != nil:
		former[last].Until = *change.Cut
	case waiting: // the new periods replace periods that had not begun
	default:
		ended := calendarOf(old, was)
		ended.Until = change.From
		former = append(former, ended)
	}
	if former = w.dropFormer(former, runs); slices.Equal(former, old.Former) {
		return nil
	}
	c.Former = former
	stored, err := json.Marshal(former)
	if err != nil {
		return err
	}
	_, err = w.Exec(ctx, setFormer, c.ID, stored)
	return err
}

// dropFormer drops the oldest former periods if there are too many. Periods that end in or after the open
// period are kept. The open period may be long ago, because periods are not closed as soon as they end.
func (w *Writing) dropFormer(former []plans.FormerPeriods, runs int64) []plans.FormerPeriods {
	needed := runs
	if w.Open != nil && w.Open.End > 0 {
		needed = min(runs, w.Open.Start)
	}
	for len(former) > maxFormer && former[0].Until <= needed {
		former = former[1:]
	}
	return former
}

// periodsOf returns a customer's periods under the plan version in force, and the meters that have a
// price in that version.
func (w *Writing) periodsOf(ctx context.Context, c *plans.Customer) (p pricedPeriods, err error) {
	p.plan, err = one(ctx, w, plans.ErrUnknownVersion, scanPlan, getPlanVersion, c.Plan, int64(c.EffectiveVersion))
	if err != nil {
		return p, err
	}
	for i := range p.plan.Prices {
		p.priced = append(p.priced, p.plan.Prices[i].Meter)
	}
	p.Periods, err = c.Periods(p.plan)
	return p, err
}

type pricedPeriods struct {
	calendar.Periods
	plan   *plans.Plan
	priced []string
}
