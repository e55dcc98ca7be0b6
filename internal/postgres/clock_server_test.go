package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// patientClock is a clock that also measures on a slow machine.
func patientClock(databaseURL string) *postgres.Clock {
	clock := postgres.NewClock(databaseURL, nil)
	clock.Within, clock.Width = testkit.Patience, testkit.Patience
	return clock
}

func TestClockTellsTheServersTime(t *testing.T) {
	ctx := testkit.Context(t)
	databaseURL := pgtest.NewDatabase(t)
	clock := patientClock(databaseURL)
	defer clock.Close()
	for range 3 {
		before := pgtest.Query[time.Time](t, databaseURL, "SELECT clock_timestamp()")
		us, err := clock.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		after := pgtest.Query[time.Time](t, databaseURL, "SELECT clock_timestamp()")
		_, width, _ := clock.Quality()
		if now := time.UnixMicro(us); now.Before(before.Add(-width)) || now.After(after.Add(width)) {
			t.Errorf("Now = %v, between %v and %v on the server (width %v)", now, before, after, width)
		}
	}
}

func TestClockRunOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t, pgtest.WithoutMigrations())
	ctx, cancel := context.WithCancel(testkit.Context(t))
	clock := patientClock(s.URL())
	ended := make(chan bool)
	go func() { clock.Run(ctx); close(ended) }()
	testkit.Eventually(t, "the first measurement", func() bool { _, ok := clock.Estimate(); return ok })
	s.Crash()
	s.WaitReady()
	// The connection is dead; the next measurement makes another.
	age := func() time.Duration { age, _, _ := clock.Quality(); return age }
	testkit.Eventually(t, "the measurement ages", func() bool { return age() > time.Second })
	testkit.Eventually(t, "a measurement after the outage", func() bool { return age() < time.Second })
	cancel()
	<-ended
	clock.Close()
}

func TestClosedClockMeasuresNoMore(t *testing.T) {
	clock := postgres.NewClock(pgtest.NewDatabase(t), nil)
	clock.Close()
	if _, err := clock.Now(testkit.Context(t)); !errors.Is(err, postgres.ErrClockUnsure) {
		t.Errorf("got %v", err)
	}
}
