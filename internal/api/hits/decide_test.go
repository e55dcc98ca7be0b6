package hits

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// Only an outage lets a hit in; whatever else the database says does not.
func TestOnlyAnOutageLetsIn(t *testing.T) {
	t.Parallel()
	s := &Room{Server: &serve.Server{Options: serve.Options{Estimate: func() (int64, bool) { return 7, true }}}}
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

// What an outage lets in is at the clock's instant, too.
func TestDegradedByTheTestClock(t *testing.T) {
	t.Parallel()
	estimated := func() (int64, bool) { return instant("2030-01-01T00:00:00Z"), true }
	s := &Room{Server: &serve.Server{Options: serve.Options{Estimate: estimated}}}
	for want, clock := range map[string]*model.TestClock{
		"2030-01-01T00:00:00Z": nil, "2026-01-31T12:00:00Z": {Key: "c1", Now: instant("2026-01-31T12:00:00Z")},
	} {
		d, err := s.withoutDatabase(&model.Target{Clock: clock}, 1, session.ErrUnavailable)
		if err != nil || !d.Degraded || d.At != instant(want) {
			t.Errorf("%+v %v", d, err)
		}
		answer := string(respond.AppendDecision(nil, &respond.Subject{}, &d, nil, 0, 200))
		if strings.Contains(answer, `"test_clock":"c1"`) != (clock != nil) {
			t.Errorf("%s", answer)
		}
	}
}

func instant(text string) int64 {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}
