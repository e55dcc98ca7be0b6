package api

import (
	"context"
	"fmt"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota"
)

// periods is where a customer's hours and billing periods start.
func (s *Server) periods(ctx context.Context, c *plans.Customer) (calendar.Periods, error) {
	plan, err := s.store.GetPlanVersion(ctx, c.Plan, c.EffectiveVersion)
	if err != nil {
		return calendar.Periods{}, err
	}
	return c.Periods(plan)
}

// instant is the database's clock, µs; that it is not known is an outage.
func (s *Server) instant(ctx context.Context) (int64, error) {
	now, err := s.now(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", quota.ErrUnavailable, err)
	}
	return now, nil
}
