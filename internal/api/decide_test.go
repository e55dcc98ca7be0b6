package api

import (
	"errors"
	"fmt"
	"testing"

	"quotad/internal/api/serve"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// Only an outage lets a hit in; whatever else the database says does not.
func TestOnlyAnOutageLetsIn(t *testing.T) {
	t.Parallel()
	s := &Server{Server: &serve.Server{Options: serve.Options{Estimate: func() (int64, bool) { return 7, true }}}}
	target := &model.Target{Counters: []model.Counter{{}}}
	for err, lets := range map[error]bool{
		session.ErrUnavailable: true, session.ErrNoSession: false, session.ErrInternal: false, session.ErrBusy: false, session.ErrStopped: false,
		session.ErrOutcomeUnknown: false, &model.StaleError{Change: 7}: false, errors.New("other"): false,
	} {
		wrapped := fmt.Errorf("x: %w", err)
		d, got := s.withoutDatabase(target, 3, wrapped)
		if lets && (got != nil || !d.Allowed || !d.Degraded || d.Cost != 3 || d.At != 7) || !lets && (!errors.Is(got, err) || d.Allowed) {
			t.Errorf("%v: %+v, %v", err, d, got)
		}
	}
	target.Counters[0].Limits = []*model.Limit{{}, {DenyOutage: true}}
	if d, err := s.withoutDatabase(target, 3, session.ErrUnavailable); d.Allowed || !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("a limit that denies: %+v, %v", d, err)
	}
}
