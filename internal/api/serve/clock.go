package serve

import (
	"context"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// InstantOf is what a customer's clock shows, µs. With a nil clock that is the database's
// time.
func (s *Server) InstantOf(ctx context.Context, clock *model.TestClock) (int64, error) {
	if clock != nil {
		return clock.Now, nil
	}
	return s.Instant(ctx)
}

// Instant is the database's time, µs. Its error is that of session.Unreached.
func (s *Server) Instant(ctx context.Context) (int64, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, session.Unreached(err)
	}
	return now, nil
}
