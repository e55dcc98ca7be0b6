package pgtest_test

import (
	"os"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestDatabasesAreApart(t *testing.T) {
	ctx := testkit.Context(t)
	for _, databaseURL := range []string{pgtest.NewDatabase(t), pgtest.NewDatabase(t)} {
		conn, err := postgres.Connect(ctx, databaseURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "CREATE TABLE only_here (n int)"); err != nil {
			t.Fatal(err)
		}
		var super bool
		if err := conn.QueryRow(ctx, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user").Scan(&super); err != nil {
			t.Fatal(err)
		}
		if super && os.Getenv("QUOTAD_TEST_DATABASE_URL") == "" {
			t.Error("tests run as superuser; nothing would show that quotad needs none")
		}
	}
}

func TestServerGoesAndComesBack(t *testing.T) {
	ctx := testkit.Context(t)
	s := pgtest.Server(t, pgtest.WithSettings(map[string]string{"work_mem": "9MB"}))
	databaseURL := s.URL()
	s.Stop()
	if _, err := postgres.Connect(ctx, databaseURL, nil); err == nil {
		t.Error("a stopped server answers")
	}
	s.Start()
	s.Restart()
	if s.URL() != databaseURL {
		t.Errorf("the URL changed from %s to %s", databaseURL, s.URL())
	}
	for _, blow := range []func(){s.Crash, s.Kill} {
		pid := s.Embedded().PID()
		blow()
		s.WaitReady()
		if now := s.Embedded().PID(); now == pid || now == 0 {
			t.Errorf("process %d after %d", now, pid)
		}
	}
	conn, err := postgres.Connect(ctx, s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var workMem, fsync string
	err = conn.QueryRow(ctx, "SELECT current_setting('work_mem'), current_setting('fsync') FROM migrations LIMIT 1").Scan(&workMem, &fsync)
	if err != nil || workMem != "9MB" || fsync != "on" {
		t.Errorf("work_mem %s, fsync %s, %v", workMem, fsync, err)
	}
}

// The server's clock steps for sessions that there are and for later ones, and what waits is not moved.
func TestServersClockSteps(t *testing.T) {
	ctx := testkit.Context(t)
	s := pgtest.Server(t, pgtest.WithClock(), pgtest.WithoutMigrations())
	old, err := postgres.Connect(ctx, s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close(ctx)
	for _, step := range []time.Duration{0, time.Hour, -time.Hour, 0} {
		s.StepClock(step)
		before := time.Now().Add(step - time.Millisecond)
		var first, waited time.Time
		if err := old.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&first); err != nil {
			t.Fatal(err)
		}
		if _, err := old.Exec(ctx, "SELECT pg_sleep(0.01)"); err != nil {
			t.Fatal(err)
		}
		waited = pgtest.Query[time.Time](t, s.URL(), "SELECT clock_timestamp()")
		after := time.Now().Add(step + time.Millisecond)
		if first.Before(before) || waited.Sub(first) < 10*time.Millisecond || waited.After(after) {
			t.Errorf("%s: %s, and %s later, between %s and %s", step, first, waited.Sub(first), before, after)
		}
	}
}

func BenchmarkNewDatabase(b *testing.B) {
	for b.Loop() {
		pgtest.NewDatabase(b)
	}
}
