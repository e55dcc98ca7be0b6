package archive

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
	"quotad/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func in2026(m time.Month) time.Time { return time.Date(2026, m, 1, 0, 0, 0, 0, time.UTC) }

// world is a database with months from January 2026 on, and some usage: of each month, and of a month
// that was never made.
func world(t *testing.T) (url string, a *Archiver) {
	t.Helper()
	url = pgtest.NewDatabase(t)
	pool := planstest.NewPool(t, url)
	quotatest.SplitMonths(t.Context(), t, pool, in2026(1), 4)
	for m := range time.Month(6) {
		_, err := pool.Exec(t.Context(),
			`INSERT INTO usage (shard, customer, meter, hour, admitted, denied) VALUES (1, 7, 1, $1, 10, 2), (2, 8, 1, $1, 9223372036854775807, 0)`,
			in2026(m).Add(time.Hour).UnixMicro())
		planstest.Must[any](t)(nil, err)
	}
	pgtest.Exec(t, url, `INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason) VALUES (1, 7, 1, 1, gen_random_uuid(), 3, 1, '')`)
	return url, &Archiver{Pool: pool, Now: func(context.Context) (int64, error) { return in2026(11).UnixMicro(), nil }}
}

// What was taken out comes back with the migration, unless a table of it is gone.
func TestArchivedMonthsComeBack(t *testing.T) {
	t.Parallel()
	url, a := world(t)
	const all = `SELECT concat((SELECT string_agg(u::text, ' ' ORDER BY customer, hour) FROM usage u), (SELECT string_agg(a::text, ' ') FROM adjustments a))`
	was := pgtest.Query[string](t, url, all)
	report, err := a.Run(t.Context(), in2026(5))
	if err != nil || len(report.Months) != 5 || report.GoneBefore != in2026(5).UnixMicro() {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := pgtest.Query[string](t, url,
		`SELECT string_agg(concat(customer, ' ', units, ' ', denied), ', ' ORDER BY customer) FROM archived_sums`); got != "7 50 10, 8 46116860184273879035 0" {
		t.Errorf("the sums are %s", got)
	}
	// April was never made: its hours were in the default partition.
	if got := pgtest.Query[int](t, url, `SELECT count(*) FROM archived_usage_2026_04`) + pgtest.Query[int](t, url, `SELECT count(*) FROM usage`); got != 4 {
		t.Errorf("%d rows of April and May", got)
	}
	down := func() error {
		for {
			if m, err := postgres.MigrateDown(t.Context(), url, migrations.FS, postgres.MigrateOptions{Lingering: testkit.Patience}); err != nil ||
				strings.HasSuffix(m.Name, "_archive.sql") {
				return err
			}
		}
	}
	pgtest.Exec(t, url, `ALTER TABLE archived_usage_2026_02 RENAME TO elsewhere`)
	if err := down(); err == nil {
		t.Fatal("a table is gone, and the migration was taken back")
	}
	pgtest.Exec(t, url, `ALTER TABLE elsewhere RENAME TO archived_usage_2026_02`)
	if err := down(); err != nil {
		t.Fatal(err)
	}
	if now := pgtest.Query[string](t, url, all); now != was {
		t.Errorf("\n%s\n%s", was, now)
	}
	if _, err := postgres.Migrate(t.Context(), url, migrations.FS, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	if report, err := a.Run(t.Context(), in2026(5)); err != nil || len(report.Months) != 5 {
		t.Errorf("again: %+v, %v", report, err)
	}
}

// The database refuses hours that are archived, whoever writes them, and nodes go on making months.
func TestTheDatabaseRefusesArchivedHours(t *testing.T) {
	t.Parallel()
	_, a := world(t)
	if _, err := a.Run(t.Context(), in2026(3)); err != nil {
		t.Fatal(err)
	}
	write := func(sql string, hour time.Time) error {
		_, err := a.Pool.Exec(t.Context(), sql, hour.UnixMicro())
		return err
	}
	for name, sql := range map[string]string{
		"usage":       `INSERT INTO usage (shard, customer, meter, hour, admitted) VALUES (1, 9, 1, $1, 1)`,
		"adjustments": `INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason) VALUES (1, 9, 1, $1, gen_random_uuid(), 1, 1, '')`,
		"queue":       `INSERT INTO open_adjustments (customer, meter, hour, key) VALUES (9, 1, $1, gen_random_uuid())`,
		"clock":       `INSERT INTO test_clocks (key, now, change) VALUES ('c', $1::bigint + 86400000000, 1)`,
	} {
		for _, hour := range []time.Time{in2026(3).Add(-time.Microsecond), in2026(1), time.UnixMicro(0)} {
			if err := write(sql, hour); !postgres.Archived(err) {
				t.Errorf("%s of %v: %v", name, hour, err)
			}
		}
		if err := write(sql, in2026(3)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	next := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	made, err := upkeep.NewPartitioner(a.Pool, func(context.Context) (int64, error) { return next.UnixMicro(), nil }, nil).Make(t.Context())
	if err != nil || made < 8 {
		t.Errorf("%d months were made, %v", made, err)
	}
}

// One command works at a time, and one that waits for a table in vain says so.
func TestOneArchives(t *testing.T) {
	t.Parallel()
	url, a := world(t)
	conn, err := a.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, archiveLock); err != nil {
		t.Fatal(err)
	}
	var refused RefusedError
	if _, err := a.Run(t.Context(), in2026(2)); !errors.As(err, &refused) {
		t.Errorf("beside another: %v", err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, archiveLock); err != nil {
		t.Fatal(err)
	}
	// A writer of billing's tables is waited for, and nothing is changed until it has ended.
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE invoices IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var said *pgconn.PgError
	if _, err := a.Run(short, in2026(2)); !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &said) {
		t.Errorf("beside a writer: %v", err)
	}
	if got := pgtest.Query[int64](t, url, `SELECT before FROM archive`); got != -1<<63 {
		t.Errorf("the bound is %d", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report, err := a.Run(t.Context(), in2026(2)); err != nil || len(report.Months) != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}
