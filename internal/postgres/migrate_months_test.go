package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const (
	beforeMonths = "00021~" // whatever 00021 is named
	withMonths   = "00022_months.sql"

	// What a node of the version before sends.
	bookBefore = `
INSERT INTO usage (shard, customer, meter, hour, admitted)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
ON CONFLICT (shard, customer, meter, hour) DO UPDATE SET
	admitted = least(usage.admitted::numeric + excluded.admitted, 9223372036854775807)`
	denyBefore = `
INSERT INTO usage (shard, customer, meter, hour, denied)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
ON CONFLICT (shard, customer, meter, hour)
DO UPDATE SET denied = least(usage.denied::numeric + excluded.denied, 9223372036854775807)`
	adjustBefore = `
INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[], $8::text[])`
	sumBefore = `
SELECT coalesce(sum(u.admitted), 0)::bigint FROM unnest($1::smallint[], $2::bigint[]) AS i (shard, customer),
LATERAL (SELECT admitted FROM usage WHERE shard = i.shard AND customer = i.customer AND meter = 1 AND hour >= 0 AND hour < 9000000000000000 OFFSET 0) u`

	// hour2040 is of a test clock that is years ahead.
	hour2040 = int64(2_208_988_800_000_000)
)

// bookAsBefore is a session of a node of the version before, which has prepared its statements before
// the upgrade. Each call of book adds a unit, a refused one and an adjustment to an hour.
func bookAsBefore(ctx context.Context, t *testing.T, databaseURL string) (book func(hour int64) error, sum func() int64) {
	t.Helper()
	session, err := postgres.Connect(ctx, databaseURL, map[string]string{"plan_cache_mode": "force_generic_plan"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { postgres.CloseConn(session) })
	key := func() []any { return []any{[]int16{1}, []int64{7}, []int32{1}} }
	n := int64(0)
	book = func(hour int64) error {
		n++
		_, err := session.Exec(ctx, bookBefore, append(key(), []int64{hour}, []int64{1})...)
		if err == nil {
			_, err = session.Exec(ctx, denyBefore, append(key(), []int64{hour}, []int64{1})...)
		}
		if err == nil {
			_, err = session.Exec(ctx, adjustBefore, append(key(), []int64{hour}, [][16]byte{{byte(n >> 16), byte(n >> 8), byte(n)}}, []int64{1}, []int64{1}, []string{""})...)
		}
		return err
	}
	sum = func() (units int64) {
		if err := session.QueryRow(ctx, sumBefore, []int16{1}, []int64{7}).Scan(&units); err != nil {
			t.Fatal(err)
		}
		return units
	}
	return book, sum
}

// beside does something again and again, until stop has seen that it goes on. stop returns how often it
// was done.
func beside(t *testing.T, do func(n int64) error) (stop func() int64) {
	t.Helper()
	var done atomic.Int64
	ends, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-ends:
				ended <- nil
				return
			default:
			}
			if err := do(done.Load()); err != nil {
				ended <- err
				return
			}
			done.Add(1)
		}
	}()
	return func() int64 {
		t.Helper()
		now := done.Load()
		testkit.Eventually(t, "it goes on", func() bool { return done.Load() > now+10 || len(ended) > 0 })
		close(ends)
		if err := <-ended; err != nil {
			t.Fatalf("after %d: %v", done.Load(), err)
		}
		return done.Load()
	}
}

const whereUsageIs = `SELECT string_agg(tableoid::regclass || ' ' || hour / 3600000000 || ' ' || admitted || ' ' || denied, ', ' ORDER BY hour) FROM usage WHERE customer = 1`

// The tables of before become the first partitions while a node of the version before writes, and goes
// on with what it prepared. Nothing that it wrote is lost. What is years ahead is in the default
// partition, and is found by its key again.
func TestMonthsBesideANodeOfBefore(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	toVersion(t, databaseURL, beforeMonths, false)
	pgtest.Exec(t, databaseURL,
		`INSERT INTO usage (shard, customer, meter, hour, admitted, denied) SELECT 1, 1, 1, h * 3600000000::bigint, 5, 2 FROM unnest(ARRAY[0, 400000, 613608]) h`,
		`INSERT INTO usage (shard, customer, meter, hour, admitted) SELECT c % 1024, c, 1, 3600000000 * h::bigint, 1 FROM generate_series(100, 300) c, generate_series(1, 100) h`)
	book, sum := bookAsBefore(ctx, t, databaseURL)
	if err := book(0); err != nil {
		t.Fatal(err)
	}
	stop := beside(t, func(n int64) error { return book(3_600_000_000 * ((n + 1) % 500)) })
	toVersion(t, databaseURL, withMonths, false)
	booked := 1 + stop()
	if n := sum(); n != booked {
		t.Errorf("%d units are there of %d booked", n, booked)
	}
	if err := book(hour2040); err != nil {
		t.Error(err)
	}
	booked++
	one := func(what string, want int64, sql string) {
		t.Helper()
		if n := pgtest.Query[int64](t, databaseURL, sql); n != want {
			t.Errorf("%s: %d, want %d", what, n, want)
		}
	}
	one("denied", booked, `SELECT sum(denied)::bigint FROM usage WHERE customer = 7`)
	one("adjusted", booked, `SELECT sum(cost)::bigint FROM adjustments WHERE customer = 7`)
	one("in the queue", booked, `SELECT count(*) FROM open_adjustments WHERE customer = 7`)
	one("rows of others", 201*100, `SELECT count(*) FROM ONLY usage_first WHERE customer >= 100`)
	const three = "usage_first 0 5 2, usage_first 400000 5 2, usage_default 613608 5 2"
	if got := pgtest.Query[string](t, databaseURL, whereUsageIs); got != three {
		t.Errorf("rows are at %s, want %s", got, three)
	}
	one("the constraint", 0, `SELECT count(*) FROM pg_constraint WHERE conname IN ('usage_bound', 'adjustments_bound')`)
	one("rooms in pages", 2, `SELECT count(*) FROM pg_class WHERE relname IN ('usage_first', 'usage_default') AND reloptions = '{fillfactor=80}'`)

	pgtest.Exec(t, databaseURL, `DELETE FROM migrations WHERE version_id = 22`)
	toVersion(t, databaseURL, withMonths, false) // a run that ended before it was noted
	toVersion(t, databaseURL, withMonths, true)
	if got, want := pgtest.Query[string](t, databaseURL, whereUsageIs), strings.NewReplacer("_first", "", "_default", "").Replace(three); got != want {
		t.Errorf("taken back, rows are at %s, want %s", got, want)
	}
	if err := book(hour2040); err != nil || sum() != booked+1 {
		t.Errorf("taken back: %d units, want %d, %v", sum(), booked+1, err)
	}
	one("in the queue after it was taken back", booked+1, `SELECT count(*) FROM open_adjustments WHERE customer = 7`)
	one("tables are left", 0, `SELECT count(*) FROM pg_class WHERE relname ~ '^(usage|adjustments)_(first|default|months)'`)
	toVersion(t, databaseURL, withMonths, false)
	if got := pgtest.Query[string](t, databaseURL, whereUsageIs); got != three {
		t.Errorf("again, rows are at %s, want %s", got, three)
	}
}

// A run that fails says why, and leaves no constraint: hours of the month to come would be refused.
func TestMonthsThatFail(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	toVersion(t, databaseURL, beforeMonths, false)
	pgtest.Exec(t, databaseURL, `CREATE TABLE adjustments_default (n integer)`)
	_, err := postgres.Migrate(ctx, databaseURL, schemaTo(t, withMonths), quietly)
	if err == nil || !strings.Contains(err.Error(), "adjustments is not partitioned") || !strings.Contains(err.Error(), "42P07") {
		t.Errorf("%v", err)
	}
	if n := pgtest.Query[int](t, databaseURL, `SELECT count(*) FROM pg_constraint WHERE conname IN ('usage_bound', 'adjustments_bound')`); n != 0 {
		t.Errorf("%d constraints are left", n)
	}
	pgtest.Exec(t, databaseURL, `DROP TABLE adjustments_default`)
	toVersion(t, databaseURL, withMonths, false)
	if n := pgtest.Query[int](t, databaseURL, `SELECT count(*) FROM pg_class WHERE relname IN ('usage', 'adjustments') AND relkind = 'p'`); n != 2 {
		t.Errorf("%d tables are partitioned", n)
	}
}

const withAuditMonths = "00023_audit_months.sql"

// The audit trail of before becomes the first partition while a node of the version before writes. No
// entry is lost or changed, ids go on, and nothing changes an entry afterwards.
func TestAuditMonthsBesideANodeOfBefore(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	toVersion(t, databaseURL, withMonths, false)
	const insert = `INSERT INTO audit (actor, request, action, subject, target) VALUES ('a', '', '', $1, '')`
	pgtest.Exec(t, databaseURL, `INSERT INTO audit (at, actor, request, action, subject, target)
		SELECT clock_timestamp() + n * interval '1 hour', 'a', '', '', n::text, '' FROM generate_series(-3000, 100) n`)
	session, err := postgres.Connect(ctx, databaseURL, map[string]string{"plan_cache_mode": "force_generic_plan"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { postgres.CloseConn(session) })
	stop := beside(t, func(int64) error {
		_, err := session.Exec(ctx, insert, "beside")
		return err
	})
	const whole = `SELECT md5(string_agg(a::text, '|' ORDER BY id)) FROM (SELECT id, at, actor, subject, target FROM audit WHERE subject <> 'beside') a`
	before := pgtest.Query[string](t, databaseURL, whole)
	toVersion(t, databaseURL, withAuditMonths, false)
	entries := 3101 + stop()
	check := func(when string) {
		t.Helper()
		if got := pgtest.Query[string](t, databaseURL, whole); got != before {
			t.Errorf("%s: entries have changed", when)
		}
		if n := pgtest.Query[int64](t, databaseURL, `SELECT count(DISTINCT id) FROM audit`); n != entries {
			t.Errorf("%s: %d ids of %d entries", when, n, entries)
		}
		for _, sql := range []string{`UPDATE audit SET actor = 'b'`, `DELETE FROM audit`, `TRUNCATE audit`} {
			if _, err := session.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %s: %v", when, sql, err)
			}
		}
		if _, err := session.Exec(ctx, insert, "beside"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		entries++
		if !pgtest.Query[bool](t, databaseURL, `SELECT max(id) = (SELECT count(*) FROM audit) FROM audit`) {
			t.Errorf("%s: ids do not go on", when)
		}
	}
	check("partitioned")
	if n := pgtest.Query[int](t, databaseURL, `SELECT count(*) FROM audit_first`); n < 3101 {
		t.Errorf("%d entries are in the table of before", n)
	}
	for _, sql := range []string{`DELETE FROM audit_first`, `TRUNCATE audit_first`} {
		if _, err := session.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	pgtest.Exec(t, databaseURL, `DELETE FROM migrations WHERE version_id = 23`)
	toVersion(t, databaseURL, withAuditMonths, false) // a run that ended before it was noted
	check("run again")
	toVersion(t, databaseURL, withAuditMonths, true)
	check("taken back")
	toVersion(t, databaseURL, withAuditMonths, false)
	check("partitioned again")
	if n := pgtest.Query[int](t, databaseURL, `SELECT count(*) FROM pg_constraint WHERE conname = 'audit_bound'`); n != 0 {
		t.Error("the constraint is left")
	}
}
