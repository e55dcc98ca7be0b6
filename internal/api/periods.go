package api

import (
	"context"
	"fmt"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota"
)

// periods is where a customer's hours and billing periods start.
type periods struct {
	zone     *time.Location
	anchor   calendar.Anchor
	interval calendar.Interval
}

// periods reads them of a customer. What is stored has been checked when it was written.
func (s *Server) periods(ctx context.Context, c *plans.Customer) (p periods, err error) {
	plan, err := s.store.GetPlanVersion(ctx, c.Plan, c.EffectiveVersion)
	if err != nil {
		return p, err
	}
	if p.zone, err = calendar.Location(c.Timezone); err != nil {
		return p, fmt.Errorf("customer %d: %w", c.ID, err)
	}
	if p.anchor, err = calendar.ParseAnchor(c.BillingAnchor); err != nil {
		return p, fmt.Errorf("customer %d: %w", c.ID, err)
	}
	p.interval = calendar.Interval{Unit: calendar.Unit(plan.Interval), Count: plan.IntervalCount}
	return p, nil
}

// hourStart is the start of the hour, as usage is kept, that holds an instant: cut where
// a billing period starts, so that the sum over a period is that period's usage.
func (p *periods) hourStart(at int64) int64 {
	_, start, end := calendar.Period(p.anchor, p.interval, p.zone, at)
	start, _ = calendar.HourWithin(at, p.zone, start, end)
	return start
}

// instant is the database's clock, µs; that it is not known is an outage.
func (s *Server) instant(ctx context.Context) (int64, error) {
	now, err := s.now(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", quota.ErrUnavailable, err)
	}
	return now, nil
}
