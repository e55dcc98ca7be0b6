package api

import (
	"context"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// instantOf is what a customer's clock shows, µs. With a nil clock that is the database's
// time.
func (s *shared) instantOf(ctx context.Context, clock *model.TestClock) (int64, error) {
	if clock != nil {
		return clock.Now, nil
	}
	return s.instant(ctx)
}

// instant is the database's time, µs. Its error is that of session.Unreached.
func (s *shared) instant(ctx context.Context) (int64, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, session.Unreached(err)
	}
	return now, nil
}
