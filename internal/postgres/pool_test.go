package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/migrations"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
)

func TestOpenNeedsNoServer(t *testing.T) {
	pool, err := postgres.Open(context.Background(), "postgres://u@127.0.0.1:1/db", postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if pool.Ping(testkit.Context(t)) == nil {
		t.Error("something answers on port 1")
	}
}

func TestSessionSettings(t *testing.T) {
	ctx := testkit.Context(t)
	databaseURL := pgtest.NewDatabase(t)
	pool, err := postgres.Open(ctx, databaseURL, postgres.PoolOptions{
		StatementTimeout: 77 * time.Second, Params: map[string]string{"work_mem": "5MB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for name, want := range map[string]string{
		"TimeZone": "UTC", "application_name": "quotad", "work_mem": "5MB",
		"statement_timeout": "77s", "idle_in_transaction_session_timeout": "30s",
	} {
		var got string
		if err := pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
	short, err := postgres.Open(ctx, databaseURL, postgres.PoolOptions{StatementTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	_, err = short.Exec(ctx, "SELECT pg_sleep(60)")
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "57014" {
		t.Errorf("an endless statement: %v", err)
	}
}

func TestLaneSettings(t *testing.T) {
	ctx := testkit.Context(t)
	params := map[string]string{"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"}
	conn, err := postgres.Connect(ctx, pgtest.NewDatabase(t), params)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for name, want := range params {
		var got string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
}

// What a URL sets wins over defaults, and what the caller sets over both.
func TestURLSettings(t *testing.T) {
	ctx := testkit.Context(t)
	databaseURL := pgtest.NewDatabase(t) + "&timezone=Europe/Berlin&statement_timeout=7s&jit=on&search_path=public,pg_temp&options=-c%20work_mem%3D7MB"
	pool, err := postgres.Open(ctx, databaseURL, postgres.PoolOptions{Params: map[string]string{"jit": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for name, want := range map[string]string{
		"TimeZone": "Europe/Berlin", "statement_timeout": "7s", "jit": "off", "search_path": "public,pg_temp", "work_mem": "7MB",
	} {
		var got string
		if err := pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
	bad, err := postgres.Open(ctx, pgtest.NewDatabase(t)+"&no_such_setting=1", postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if err := bad.Ping(ctx); err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("a setting that the server does not know: %v", err)
	}
}

// withHosts puts other hosts in front of a URL's own. each is how many seconds one may take.
func withHosts(t *testing.T, databaseURL, each string, hosts ...string) string {
	t.Helper()
	config, err := pgconn.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	ports := make([]string, 0, len(hosts)+1)
	for i, h := range hosts {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			host, port = h, "5432"
		}
		hosts[i], ports = host, append(ports, port)
	}
	hosts, ports = append(hosts, config.Host), append(ports, fmt.Sprint(config.Port))
	u := url.URL{Scheme: "postgres", Path: "/" + config.Database, User: url.UserPassword(config.User, config.Password)}
	u.RawQuery = url.Values{"host": {strings.Join(hosts, ",")}, "port": {strings.Join(ports, ",")}, "connect_timeout": {each}}.Encode()
	return u.String()
}

func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	// The first refuses, the second takes the connection and says nothing.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	// The mute one takes all of its time, and the last one no more than that, also on a slow machine.
	databaseURL, both := withHosts(t, pgtest.NewDatabase(t), "10", "127.0.0.1:1", mute.Addr().String()), new(errgroup.Group)
	both.Go(func() error {
		_, err := pgtest.TryQuery[int](testkit.Context(t), databaseURL, "SELECT 1")
		return err
	})
	both.Go(func() error { // Migrations and the clock find their way, too.
		_, _, err := postgres.MigrateStatus(testkit.Context(t), databaseURL, migrations.FS, postgres.MigrateOptions{})
		return err
	})
	if err := both.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOneOfSeveralHostsThatTakesWrites(t *testing.T) {
	t.Parallel()
	standby := pgtest.Server(t, pgtest.WithoutMigrations())
	primary := pgtest.Server(t, pgtest.WithoutMigrations())
	pgtest.Exec(t, standby.AdminURL(), "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
	testkit.Eventually(t, "the standby takes no writes", func() bool {
		return pgtest.Query[string](t, standby.URL(), "SHOW transaction_read_only") == "on"
	})
	u, err := url.Parse(standby.URL())
	if err != nil {
		t.Fatal(err)
	}
	both := withHosts(t, primary.URL(), fmt.Sprint(testkit.Patience.Seconds()), u.Query().Get("host"))
	const directory = "SHOW data_directory"
	want := pgtest.Query[string](t, primary.AdminURL(), directory)
	if got := pgtest.Query[string](t, both, directory); got != want {
		t.Errorf("connected to the server in %s, want the primary in %s", got, want)
	}
}

func TestConnectionToFormerPrimaryIsDropped(t *testing.T) {
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, pgtest.NewDatabase(t), map[string]string{"default_transaction_read_only": "on"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE TABLE x (n int)"); err == nil || !conn.IsClosed() {
		t.Errorf("err %v, closed %v", err, conn.IsClosed())
	}
}

func TestConnectHasADeadline(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	connect := func(ctx context.Context, seconds string) error {
		_, err := postgres.Connect(ctx, "postgres://u@"+mute.Addr().String()+"/db?sslmode=disable&connect_timeout="+seconds, nil)
		return err
	}
	ctx, cancel := context.WithCancel(context.Background()) // without a deadline
	long, short := make(chan error, 1), make(chan error, 1)
	go func() { long <- connect(ctx, "600"); close(long) }()
	go func() { short <- connect(ctx, "1") }()
	select {
	case err := <-short:
		if err == nil {
			t.Error("it is connected with nobody")
		}
	case err := <-long:
		t.Errorf("the long one ends first: %v", err)
	case <-testkit.Bounded(t).Done():
		t.Error("it has no deadline")
	}
	cancel()
	if err := <-long; err == nil {
		t.Error("it is connected with nobody")
	}
}
