package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/migrations"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// steps is a schema of n steps, each of which makes a table.
func steps(n int) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 1; i <= n; i++ {
		fsys[fmt.Sprintf("%05d_step.sql", i)] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"-- +goose Up\nCREATE TABLE step%d (n int);\n-- +goose Down\nDROP TABLE step%[1]d;\n", i)}
	}
	return fsys
}

// emptyDatabase is one of the private server's kind without any schema, owned
// by a role that may do nothing else.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(pgtest.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + "_empty"
	admin := pgtest.AdminURL(t)
	pgtest.Exec(t, admin, "CREATE ROLE "+name+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE", "CREATE DATABASE "+name+" OWNER "+name)
	t.Cleanup(func() {
		if !t.Failed() {
			pgtest.Exec(t, admin, "DROP DATABASE "+name+" WITH (FORCE)", "DROP ROLE "+name)
		}
	})
	u.Path, u.User = "/"+name, url.User(name)
	return u.String()
}

func migrate(t *testing.T, databaseURL string, n int) []postgres.Migration {
	t.Helper()
	applied, err := postgres.Migrate(testkit.Context(t), databaseURL, steps(n), quietly)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// quietly also waits for a session before that is slow to end.
var quietly = postgres.MigrateOptions{Logger: slog.New(slog.DiscardHandler), Lingering: testkit.Patience}

func TestMigrateUpAndDownWithoutSuperuser(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	if applied := migrate(t, databaseURL, 2); len(applied) != 2 || applied[1].Version != 2 || applied[1].Name != "00002_step.sql" {
		t.Errorf("applied %+v", applied)
	}
	if applied := migrate(t, databaseURL, 2); len(applied) != 0 {
		t.Errorf("applied again: %+v", applied)
	}
	version, all, err := postgres.MigrateStatus(ctx, databaseURL, steps(3), quietly)
	if err != nil || version != 2 || len(all) != 3 || all[1].AppliedAt.IsZero() || !all[2].AppliedAt.IsZero() {
		t.Errorf("status %d, %+v, %v", version, all, err)
	}
	for _, want := range []int64{2, 1} {
		if got, err := postgres.MigrateDown(ctx, databaseURL, steps(2), quietly); err != nil || got.Version != want {
			t.Errorf("took back %+v, %v; want %d", got, err, want)
		}
	}
	if _, err := postgres.MigrateDown(ctx, databaseURL, steps(2), quietly); !errors.Is(err, postgres.ErrNothingToRevert) {
		t.Errorf("below the first: %v", err)
	}
	if applied := migrate(t, databaseURL, 3); len(applied) != 3 {
		t.Errorf("up again: %+v", applied)
	}
}

// While a quotad serves, its schema is not taken away; and a pool that comes meanwhile
// waits until it is.
func TestMigrateDownIsRefusedWhileServing(t *testing.T) {
	t.Parallel()
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	migrate(t, databaseURL, 1)
	serve := func() *pgxpool.Pool {
		pool, err := postgres.Open(ctx, databaseURL, postgres.PoolOptions{Serving: true})
		if err == nil {
			err = pool.Ping(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return pool
	}
	one, two := serve(), serve()
	one.Close()
	if _, err := postgres.MigrateDown(ctx, databaseURL, steps(1), postgres.MigrateOptions{Logger: quietly.Logger}); !errors.Is(err, postgres.ErrServing) {
		t.Errorf("got %v", err)
	}
	two.Close()
	if _, err := postgres.MigrateDown(ctx, databaseURL, steps(1), quietly); err != nil {
		t.Error(err)
	}
	serve().Close()
}

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	databaseURL := emptyDatabase(t)
	ctx := testkit.Context(t)
	results := make(chan int, 4)
	var group errgroup.Group
	for range cap(results) {
		group.Go(func() error {
			applied, err := postgres.Migrate(ctx, databaseURL, steps(3), quietly)
			results <- len(applied)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for range cap(results) {
		total += <-results
	}
	if total != 3 {
		t.Errorf("%d migrations were applied, want 3 in all", total)
	}
}

func TestNewerSchemaIsAccepted(t *testing.T) {
	databaseURL := emptyDatabase(t)
	migrate(t, databaseURL, 3)
	var log bytes.Buffer
	opts := postgres.MigrateOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	applied, err := postgres.Migrate(testkit.Context(t), databaseURL, steps(2), opts)
	if err != nil || len(applied) != 0 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("applied %v, %v, logged %q", applied, err, log.String())
	}
	if _, err := postgres.MigrateDown(testkit.Context(t), databaseURL, steps(2), quietly); !errors.Is(err, postgres.ErrNewerSchema) {
		t.Errorf("down: %v", err)
	}
	if version := pgtest.Query[int64](t, databaseURL, "SELECT max(version_id) FROM migrations"); version != 3 {
		t.Errorf("the schema is at %d", version)
	}
}

// A database whose migrations are other files here is refused, and stays as it is: whether this build has
// more of them, as many, or fewer.
func TestSchemaOfOtherFilesIsRefused(t *testing.T) {
	for _, c := range []struct {
		why  string
		made func(t *testing.T, databaseURL string)
	}{
		{"(its migration 00002 is another file)", func(t *testing.T, databaseURL string) { migrate(t, databaseURL, 3) }},
		{"(it does not say which files made it)", func(t *testing.T, databaseURL string) {
			migrate(t, databaseURL, 3)
			pgtest.Exec(t, databaseURL, `ALTER TABLE migrations DROP COLUMN fingerprint`)
		}},
		{"(it does not say which files made it)", func(t *testing.T, databaseURL string) {
			pgtest.Exec(t, databaseURL, `CREATE TABLE change_number (n int)`, `CREATE TABLE goose_db_version (n int)`)
		}},
	} {
		ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
		c.made(t, databaseURL)
		const tables = `SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace`
		was := pgtest.Query[string](t, databaseURL, tables)
		conn, err := postgres.Connect(ctx, databaseURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer postgres.CloseConn(conn)
		for n := 1; n <= 4; n++ {
			files := steps(n)
			files["00001_step.sql"].Data = append(files["00001_step.sql"].Data, '\n')
			if n > 1 {
				files["00001_step.sql"] = steps(1)["00001_step.sql"]
				files["00002_step.sql"].Data = append(files["00002_step.sql"].Data, '\n')
			}
			_, up := postgres.Migrate(ctx, databaseURL, files, quietly)
			_, down := postgres.MigrateDown(ctx, databaseURL, files, quietly)
			_, _, status := postgres.MigrateStatus(ctx, databaseURL, files, quietly)
			for what, err := range map[string]error{"up": up, "down": down, "status": status, "check": postgres.CheckSchema(ctx, conn, files)} {
				want := c.why
				if n == 1 {
					want = strings.Replace(want, "00002", "00001", 1)
				}
				if !errors.Is(err, postgres.ErrOtherSchema) || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("%s with %d files: %v, want %s", what, n, err, want)
				}
			}
		}
		if now := pgtest.Query[string](t, databaseURL, tables); now != was {
			t.Errorf("tables are %s, and were %s", now, was)
		}
	}
}

// Builds that differ migrate one database at once. One of them makes it, and all others are told.
func TestBuildsThatDifferMigrateAtOnce(t *testing.T) {
	t.Parallel()
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	other := steps(3)
	for _, file := range other {
		file.Data = append(file.Data, '\n')
	}
	results := make(chan error, 6)
	for n := range cap(results) {
		files := []fstest.MapFS{steps(3), other}[n%2]
		go func() {
			_, err := postgres.Migrate(ctx, databaseURL, files, quietly)
			results <- err
		}()
	}
	told := 0
	for range cap(results) {
		if err := <-results; errors.Is(err, postgres.ErrOtherSchema) {
			told++
		} else if err != nil {
			t.Error(err)
		}
	}
	if told != cap(results)/2 {
		t.Errorf("%d were told, want %d", told, cap(results)/2)
	}
}

func TestFailedMigrationLeavesTheOneBefore(t *testing.T) {
	databaseURL := emptyDatabase(t)
	fsys := steps(2)
	fsys["00002_step.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE half (n int);\nSELECT 1/0;\n")}
	if _, err := postgres.Migrate(testkit.Context(t), databaseURL, fsys, quietly); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("got %v", err)
	}
	if pgtest.Query[bool](t, databaseURL, "SELECT to_regclass('half') IS NOT NULL") {
		t.Error("half a migration stays")
	}
	if applied := migrate(t, databaseURL, 2); len(applied) != 1 {
		t.Errorf("after it was mended: %+v", applied)
	}
}

func TestMigrateWaitsNoLongerThanItsDeadline(t *testing.T) {
	databaseURL := emptyDatabase(t)
	ctx := testkit.Context(t)
	other, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	if _, err := other.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(0x71756f746164)); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := postgres.Migrate(short, databaseURL, steps(1), quietly); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if pgtest.Query[bool](t, databaseURL, "SELECT to_regclass('step1') IS NOT NULL") {
		t.Error("it migrated beside the other")
	}
}

// The project's own schema.
func TestMigrationsUpDownUp(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	up := func() {
		t.Helper()
		if applied, err := postgres.Migrate(ctx, databaseURL, migrations.FS, quietly); err != nil || len(applied) == 0 {
			t.Fatalf("applied %v, %v", applied, err)
		}
	}
	up()
	for {
		_, err := postgres.MigrateDown(ctx, databaseURL, migrations.FS, quietly)
		if errors.Is(err, postgres.ErrNothingToRevert) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const left = `SELECT (SELECT count(*) FROM pg_class c WHERE relnamespace = 'public'::regnamespace
			AND relkind IN ('r','v','S','m') AND relname NOT LIKE 'migrations%')
		+ (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)`
	if n := pgtest.Query[int](t, databaseURL, left); n != 0 {
		t.Errorf("down leaves %d tables, views, sequences or functions", n)
	}
	up()
}
