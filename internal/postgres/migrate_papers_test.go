package postgres_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/migrations"
)

// schemaTo is the schema up to a migration.
func schemaTo(t *testing.T, last string) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name <= last {
			data, err := fs.ReadFile(migrations.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			fsys[name] = &fstest.MapFile{Data: data}
		}
	}
	return fsys
}

const papers = "00014_papers.sql"

// numberedBefore are two customers, of which one lives by a test clock, each with an invoice that was
// numbered in the one series there was.
var numberedBefore = []string{
	`INSERT INTO test_clocks (key, now, change) VALUES ('clock', 0, 1)`,
	`INSERT INTO plans (key, latest_version) VALUES ('pro', 1)`,
	`INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, test_clock_id, change)
		SELECT k, k, (SELECT id FROM plans), 1, 'UTC', '', CASE k WHEN 'test' THEN (SELECT id FROM test_clocks) END, 1 FROM unnest(ARRAY['live', 'test']) k`,
	anInvoice("live"), anInvoice("test"),
	takeANumber("live", "1"), takeANumber("test", "2"),
}

// anInvoice and takeANumber are what the version before writes.
func anInvoice(customer string) string {
	return `INSERT INTO invoices (id, customer_id, kind, status, currency, chain, n, period_start, period_end, plan_id, price_version, made_at, finalize_at)
		SELECT gen_random_uuid(), id, 'period', 'draft', 'USD', 0, (SELECT count(*) FROM invoices), 0, 1, 1, 1, 0, 0 FROM customers WHERE key = '` + customer + `'`
}

func takeANumber(customer, number string) string {
	return `UPDATE invoices SET status = 'finalized', seller = 'default', number = ` + number + `, prefix = '', finalized_at = 0, digest = '\x00'
		WHERE status = 'draft' AND customer_id = (SELECT id FROM customers WHERE key = '` + customer + `')`
}

const shownNumbers = `SELECT coalesce(string_agg(c.key || ' ' || i.series || ' ' || i.number || ' ' || coalesce(t.key, '-'), ', ' ORDER BY i.series, i.number), '')
	FROM invoices i JOIN customers c ON c.id = i.customer_id LEFT JOIN test_clocks t ON t.id = i.clock_id WHERE i.number IS NOT NULL`

// Numbers that were given stay, and the version before goes on with them beside the new one. A run
// that ended half way is gone on with. Down keeps the numbers of each series, and so does up again.
func TestPapersKeepNumbers(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	up := func() {
		t.Helper()
		if _, err := postgres.Migrate(ctx, databaseURL, schemaTo(t, papers), quietly); err != nil {
			t.Fatal(err)
		}
	}
	down := func() {
		t.Helper()
		if _, err := postgres.MigrateDown(ctx, databaseURL, schemaTo(t, papers), quietly); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(want string) {
		t.Helper()
		if got := pgtest.Query[string](t, databaseURL, shownNumbers); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	refused := func(by, statement string) {
		t.Helper()
		if _, err := pgtest.TryQuery[int](ctx, databaseURL, `WITH x AS (`+statement+` RETURNING 1) SELECT count(*)::int FROM x`); err == nil || !strings.Contains(err.Error(), by) {
			t.Errorf("%v, want a refusal by %s", err, by)
		}
	}
	if _, err := postgres.Migrate(ctx, databaseURL, schemaTo(t, "00012_z"), quietly); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, databaseURL, numberedBefore...)
	up()
	before := "live live 1 -, test live 2 clock"
	shows(before)
	down()
	// The one series is as strict as it was.
	pgtest.Exec(t, databaseURL, anInvoice("test"))
	refused("invoices_number_once", takeANumber("test", "2"))
	refused("invoices_number_without_gap", takeANumber("test", "4"))
	up()
	shows(before)
	// What the version before writes: a number of the series live.
	pgtest.Exec(t, databaseURL, takeANumber("test", "3"))
	before += ", test live 3 clock"
	shows(before)
	// A draft of it knows its clock.
	pgtest.Exec(t, databaseURL, anInvoice("test"))
	refused("invoices_number_once", takeANumber("test", "3"))
	refused("invoices_number_without_gap", strings.Replace(takeANumber("test", "2"), "seller =", "series = 'test', seller =", 1))
	pgtest.Exec(t, databaseURL, strings.Replace(takeANumber("test", "1"), "seller =", "series = 'test', seller =", 1))
	both := before + ", test test 1 clock"
	shows(both)
	down()
	if got := pgtest.Query[string](t, databaseURL, `SELECT string_agg(series || ' ' || number, ', ' ORDER BY series, number) FROM invoices`); got != "live 1, live 2, live 3, test 1" {
		t.Errorf("down leaves %s", got)
	}
	pgtest.Exec(t, databaseURL, anInvoice("live"), takeANumber("live", "4"))
	up()
	shows("live live 1 -, test live 2 clock, test live 3 clock, live live 4 -, test test 1 clock")
	// All of it may be run again, as after a run that ended half way.
	pgtest.Exec(t, databaseURL, `DELETE FROM migrations WHERE version_id = 14`, `ALTER TABLE invoices DROP CONSTRAINT invoices_series_known`, `DROP INDEX invoices_nameless`)
	up()
	shows("live live 1 -, test live 2 clock, test live 3 clock, live live 4 -, test test 1 clock")
}

// toVersion migrates up to a version, or takes its newest migration back.
func toVersion(t *testing.T, databaseURL, last string, down bool) {
	t.Helper()
	ctx := testkit.Context(t)
	var err error
	if down {
		_, err = postgres.MigrateDown(ctx, databaseURL, schemaTo(t, last), quietly)
	} else {
		_, err = postgres.Migrate(ctx, databaseURL, schemaTo(t, last), quietly)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run down may end after its last statement, and before it is noted. Then it is run again.
func TestDownMayBeRunAgain(t *testing.T) {
	for _, last := range []string{"00013_void_invoices.sql", papers, "00018_words_of_names.sql", "00019_open_adjustments.sql", "00020_taken_adjustments.sql", withMonths, withAuditMonths, sellers} {
		databaseURL := emptyDatabase(t)
		toVersion(t, databaseURL, last, false)
		toVersion(t, databaseURL, last, true)
		pgtest.Exec(t, databaseURL, `INSERT INTO migrations (version_id, is_applied) VALUES (`+strings.TrimLeft(last[:5], "0")+`, true)`)
		toVersion(t, databaseURL, last, true)
		toVersion(t, databaseURL, last, false)
	}
}

// Drafts that wait for a name are due at once for the version before, on whatever clock.
func TestDownFreesDraftsThatWait(t *testing.T) {
	databaseURL := emptyDatabase(t)
	toVersion(t, databaseURL, papers, false)
	pgtest.Exec(t, databaseURL, append(slices.Clone(numberedBefore),
		anInvoice("live"), anInvoice("test"),
		`UPDATE invoices SET finalize_at = 9223372036854775807, made_at = 7, held = 'no name' WHERE status = 'draft'`,
		`INSERT INTO open_periods (customer_id, clock_id, due_at) SELECT id, test_clock_id, 9223372036854775807 FROM customers`)...)
	toVersion(t, databaseURL, papers, true)
	const freed = `SELECT string_agg(c.key || ' ' || i.finalize_at || ' ' || coalesce(i.held, '-') || ' ' || o.due_at, ', ' ORDER BY c.key)
		FROM invoices i JOIN customers c ON c.id = i.customer_id JOIN open_periods o ON o.customer_id = c.id WHERE i.status = 'draft'`
	if got := pgtest.Query[string](t, databaseURL, freed); got != "live 7 - 0, test 7 - 0" {
		t.Errorf("down leaves %s", got)
	}
	if n := pgtest.Query[int](t, databaseURL, `SELECT count(*) FROM clock_calls JOIN test_clocks t ON t.id = clock_id`); n != 1 {
		t.Errorf("%d clocks are called", n)
	}
}

// Down keeps what digests of the second form are of. The version before goes on beside it, and so
// does up again.
func TestDownKeepsWhatDigestsAreOf(t *testing.T) {
	databaseURL := emptyDatabase(t)
	const prices = "00015_line_prices.sql"
	toVersion(t, databaseURL, prices, false)
	pgtest.Exec(t, databaseURL, append(slices.Clone(numberedBefore),
		anInvoice("live"),
		`INSERT INTO invoice_lines (invoice_id, n, kind, description, from_at, to_at, quantity, included, plan_version, tiers, amount_minor, unit_price)
			SELECT id, 1, 'usage', '', 0, 1, 1, 0, 1, '[]', 1, '0.01' FROM invoices WHERE status = 'draft'`,
		strings.Replace(takeANumber("live", "3"), "seller =", "digest_form = 2, seller =", 1))...)
	toVersion(t, databaseURL, prices, true)
	// What the version before writes.
	pgtest.Exec(t, databaseURL, `UPDATE invoices SET status = 'paid', reference = 'r' WHERE number = 3`, anInvoice("live"), takeANumber("live", "4"))
	toVersion(t, databaseURL, prices, false)
	const kept = `SELECT string_agg(i.number || ' ' || i.digest_form || ' ' || coalesce(l.unit_price, '-'), ', ' ORDER BY i.number)
		FROM invoices i LEFT JOIN invoice_lines l ON l.invoice_id = i.id`
	if got := pgtest.Query[string](t, databaseURL, kept); got != "1 1 -, 2 1 -, 3 2 0.01, 4 1 -" {
		t.Errorf("up again finds %s", got)
	}
}

const sellers = "00024_sellers.sql"

// Numbers that were given before each prefix was a series stay. A prefix that began in the midst of one
// goes on from there, a former one after its last, and a new one, also by the version before, at 1. Down
// keeps what was given, and may come up again.
func TestPrefixesGoOnAfterTheUpgrade(t *testing.T) {
	databaseURL := emptyDatabase(t)
	toVersion(t, databaseURL, "00021_history.sql", false)
	const prefixed = `UPDATE sellers SET prefix = '%' WHERE key = 'default'`
	to := func(prefix string) string { return strings.Replace(prefixed, "%", prefix, 1) }
	// As the version before: it takes the next number, whatever the prefix is.
	given := func() {
		t.Helper()
		pgtest.Exec(t, databaseURL, anInvoice("live"), `
			WITH s AS (UPDATE sellers SET next_number = next_number + 1 WHERE key = 'default' RETURNING next_number - 1 AS number, prefix)
			UPDATE invoices i SET status = 'finalized', seller = 'default', number = s.number, prefix = s.prefix, finalized_at = 0, digest = '\x00'
			FROM s WHERE status = 'draft'`)
	}
	pgtest.Exec(t, databaseURL, numberedBefore[:3]...)
	pgtest.Exec(t, databaseURL, to("A"))
	given()
	given()
	pgtest.Exec(t, databaseURL, to("B"))
	given()
	pgtest.Exec(t, databaseURL, to("A"))
	given()
	pgtest.Exec(t, databaseURL, to("C")) // which gave none yet
	toVersion(t, databaseURL, sellers, false)
	given()
	given()
	pgtest.Exec(t, databaseURL, to("A"))
	given()
	pgtest.Exec(t, databaseURL, to("B"))
	given()
	pgtest.Exec(t, databaseURL, to("D"))
	given()
	pgtest.Exec(t, databaseURL, to("C"))
	given()
	const want = "A1 A2 A4 A5 B3 B4 C5 C6 C7 D1"
	const all = `SELECT string_agg(prefix || number, ' ' ORDER BY prefix, number) FROM invoices`
	if got := pgtest.Query[string](t, databaseURL, all); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	toVersion(t, databaseURL, sellers, true)
	given()
	toVersion(t, databaseURL, sellers, false)
	given()
	if got := pgtest.Query[string](t, databaseURL, all); got != "A1 A2 A4 A5 B3 B4 C5 C6 C7 C8 C9 D1" {
		t.Errorf("after down and up: %s", got)
	}
}
