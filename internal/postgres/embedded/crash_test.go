package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestKilledServerComesBack(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t, pgtest.WithoutMigrations())
	pgtest.Exec(t, s.URL(), "CREATE TABLE kept (n int)")
	for i, blow := range []func(){s.Kill, s.Crash, s.Kill} {
		pgtest.Exec(t, s.URL(), fmt.Sprintf("INSERT INTO kept VALUES (%d)", i))
		blow()
		s.WaitReady()
		if got := pgtest.Query[int](t, s.URL(), "SELECT count(*) FROM kept"); got != i+1 {
			t.Errorf("blow %d: %d rows", i, got)
		}
	}
}

// A backend that is busy does not notice that its postmaster died, and holds
// the shared memory that the next one needs.
func TestKilledServerWithBusyBackend(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t, pgtest.WithoutMigrations())
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	busy := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$")
		busy <- err
	}()
	testkit.Eventually(t, "the backend is busy", func() bool {
		return pgtest.Query[bool](t, s.URL(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active')")
	})
	s.Kill()
	s.WaitReady()
	if err := <-busy; err == nil {
		t.Error("an endless loop ended well")
	}
}

func TestServerThatKeepsDyingIsGivenUp(t *testing.T) {
	t.Parallel()
	opts := options(pgtest.Dir(t))
	opts.GiveUpAfter = 300 * time.Millisecond
	e, err := embedded.Start(testkit.Context(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(opts.DataDir, "pgdata/global/pg_control"), filepath.Join(opts.DataDir, "pgdata/global/away")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(e.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.Done():
	case <-testkit.Context(t).Done():
		t.Fatal("it goes on trying")
	}
	if e.Err() == nil || !strings.Contains(e.Err().Error(), "pg_control") {
		t.Errorf("Err = %v", e.Err())
	}
	if err := e.Stop(context.Background()); err == nil {
		t.Error("Stop of a server that was given up says nothing")
	}
	// It let the directory go: with the file back, another start does it.
	if err := os.Rename(filepath.Join(opts.DataDir, "pgdata/global/away"), filepath.Join(opts.DataDir, "pgdata/global/pg_control")); err != nil {
		t.Fatal(err)
	}
	start(t, opts)
}

func TestStalePIDFile(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	e := start(t, options(dir))
	stop(t, e)

	// A process that is nobody's server, of the very user that PostgreSQL runs
	// as: PostgreSQL alone would refuse to start while it lives.
	bystander := exec.Command("sleep", "600")
	bystander.Dir = "/"
	bystander.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser(t, dir)}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	pid := bystander.Process.Pid
	full := fmt.Sprintf("%d\n%s/pgdata\n1700000000\n5432\n%s/run\n\n  1234567  7654321\nready   \n", pid, dir, dir)
	for name, text := range map[string]string{
		"of a living bystander": full,
		"of a dead process":     strings.Replace(full, fmt.Sprint(pid), "4194303", 1),
		"of this test":          strings.Replace(full, fmt.Sprint(pid), fmt.Sprint(os.Getpid()), 1),
		"empty":                 "",
		"garbage":               "\x00\x00\x00",
		"cut off":               fmt.Sprint(pid),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, "pgdata/postmaster.pid"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{".s.PGSQL.5432.lock", ".s.PGSQL.5432"} {
				if err := os.WriteFile(filepath.Join(dir, "run", file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e := start(t, options(dir))
			if pgtest.Query[int](t, e.URL(), "SELECT 1") != 1 {
				t.Error("no answer")
			}
			stop(t, e)
			if gone(pid) {
				t.Fatal("the bystander was killed")
			}
		})
	}
}

func TestKilledQuotad(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	q := startQuotad(t, dir, nil)
	pid, databaseURL := q.ready(t)
	pgtest.Exec(t, databaseURL, "CREATE TABLE kept AS SELECT 42 AS n")
	q.kill()
	// At once: the server may be on its way down, or not yet know.
	e := start(t, options(dir))
	if got := pgtest.Query[int](t, e.URL(), "SELECT n FROM kept"); got != 42 {
		t.Errorf("n = %d", got)
	}
	if !gone(pid) {
		t.Error("the killed quotad's server still runs beside the new one")
	}
}

func TestServerGoesDownWithKilledQuotad(t *testing.T) {
	t.Parallel()
	q := startQuotad(t, pgtest.Dir(t), nil)
	pid, _ := q.ready(t)
	q.kill()
	testkit.Eventually(t, "the server goes with its quotad", func() bool { return gone(pid) })
}

func TestOrphanIsStopped(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	e := start(t, options(dir))
	command := e.Command()
	stop(t, e)

	// By hand: a server that nothing ties to a quotad.
	orphan := exec.Command("sh", "-c", "exec "+strings.TrimPrefix(command, "cd / && "))
	orphan.Dir = "/"
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	testkit.Eventually(t, "the orphan is up", func() bool {
		_, err := pgtest.TryQuery[int](testkit.Context(t), e.URL(), "SELECT 1")
		return err == nil
	})
	pgtest.Exec(t, e.URL(), "CREATE TABLE kept AS SELECT 42 AS n")

	e = start(t, options(dir))
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the orphan was not stopped in order: %v", err)
		}
	default:
		t.Error("the orphan still runs")
	}
	if got := pgtest.Query[int](t, e.URL(), "SELECT n FROM kept"); got != 42 {
		t.Errorf("n = %d", got)
	}
}

func TestInterruptedInitdb(t *testing.T) {
	dir := pgtest.Dir(t)
	q := startQuotad(t, dir, nil)
	pattern := filepath.Join(dir, "pgdata.init-*")
	testkit.Eventually(t, "initdb is under way", func() bool {
		begun, err := filepath.Glob(filepath.Join(pattern, "PG_VERSION"))
		return err == nil && len(begun) > 0
	})
	q.kill()
	if _, err := os.Stat(filepath.Join(dir, "pgdata")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("pgdata is there before initdb has ended: %v", err)
	}
	e := start(t, options(dir))
	if pgtest.Query[int](t, e.URL(), "SELECT 1") != 1 {
		t.Error("no answer")
	}
	stop(t, e)
	// A last child of the interrupted one may have written after the clearing.
	start(t, options(dir))
	if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
		t.Errorf("the interrupted one is still there: %v, %v", left, err)
	}
}
