package api

import (
	"context"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// periods is where a customer's hours and billing periods start.
func (s *Server) periods(ctx context.Context, c *plans.Customer) (calendar.Periods, error) {
	plan, err := s.store.GetPlanVersion(ctx, c.Plan, c.EffectiveVersion)
	if err != nil {
		return calendar.Periods{}, err
	}
	return c.Periods(plan)
}

// instantOf is what a customer's clock shows, µs. With a nil clock that is the database's
// time.
func (s *Server) instantOf(ctx context.Context, clock *model.TestClock) (int64, error) {
	if clock != nil {
		return clock.Now, nil
	}
	return s.instant(ctx)
}

// instant is the database's time, µs. Its error is that of session.Unreached.
func (s *Server) instant(ctx context.Context) (int64, error) {
	now, err := s.now(ctx)
	if err != nil {
		return 0, session.Unreached(err)
	}
	return now, nil
}
