package serve

import (
	"context"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// InstantOf returns the time of a customer's clock, µs. A nil clock means the database's time.
func (s *Server) InstantOf(ctx context.Context, clock *model.TestClock) (int64, error) {
	if clock != nil {
		return clock.Now, nil
	}
	return s.Instant(ctx)
}

// Instant returns the database's time, µs. Its errors are those of session.Unreached.
func (s *Server) Instant(ctx context.Context) (int64, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, session.Unreached(err)
	}
	return now, nil
}
