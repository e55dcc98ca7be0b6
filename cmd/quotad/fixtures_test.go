package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
)

// hourly and daily are the limits of the project's example.
const (
	hourly = `{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":5000,"window":"1h"}`
	// fresh is hourly with windows that a first hit begins: none ends while a test runs.
	fresh = `{"name":"hourly","meter":"requests","algorithm":"fixed_window","align":"first_hit","limit":5000,"window":"1h"}`
	daily = `{"name":"daily","meter":"requests","algorithm":"token_bucket","limit":200,"window":"1d"}`
)

// planOf is a plan with these limits and nothing else, as an admin writes it.
func planOf(limits ...string) string {
	return `{"name":"Plan","currency":"USD","interval":"month","base_price_minor":0,"prices":[],"limits":[` + strings.Join(limits, ",") + `]}`
}

const onPlan = `{"name":"Customer","plan":"basic","timezone":"UTC"}`

// fixed is a limit on requests whose window, clock-aligned, no test sees the end of.
func fixed(name string, limit int, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"meter":"requests","algorithm":"fixed_window","limit":%d,"window":"3650d"%s}`,
		name, limit, strings.Join(append([]string{""}, more...), ","))
}

// setUp declares the meter requests and the plan basic with these limits, and puts the
// customer acme on it.
func (n *testNode) setUp(limits ...string) {
	n.t.Helper()
	n.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	n.do("PUT", "/v1/plans/basic", planOf(limits...)).is(201)
	n.do("PUT", "/v1/customers/acme", onPlan).is(201)
}

// newKey makes a key and returns its id and secret.
func (n *testNode) newKey(scope string) (id, secret string) {
	n.t.Helper()
	a := n.do("POST", "/v1/keys", fmt.Sprintf(`{"name":"a key","scope":%q}`, scope)).is(201)
	return a.str("id"), a.str("secret")
}

func (n *testNode) hit(cost int64) *answer {
	n.t.Helper()
	return n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d}`, cost))
}

// query reads one value of the node's database, past quotad.
func query[T any](t testing.TB, databaseURL, sql string, args ...any) T {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, sql, args...)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// stored is every row of every table of quotad's, as text, but for what nodes write by themselves.
func stored(t testing.TB, databaseURL string) string {
	t.Helper()
	return storing(t, databaseURL)(t)
}

// storing is stored for tests that ask often: the connection and the plan are kept until the test ends.
func storing(t testing.TB, databaseURL string) func(testing.TB) string {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	rows, _ := conn.Query(ctx, `SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
		AND relname NOT IN ('key_uses', 'nodes', 'decisions', 'outbox', 'events', 'event_number', 'seller_calls', 'clock_calls', 'owed_calls', 'threshold_changes') ORDER BY 1`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 8 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	// Nodes give ids to events, and write none by themselves. They answer calls of sellers and clocks, and follow changes.
	reads := []string{`SELECT 'happened' AS name, t::text AS line FROM (SELECT type, at, customer, test_clock, data FROM outbox UNION ALL SELECT type, at, customer, test_clock, data FROM events) t`}
	for _, table := range tables {
		reads = append(reads, fmt.Sprintf(`SELECT '%s', t::text FROM %s t`, table, pgx.Identifier{table}.Sanitize()))
	}
	all := `SELECT coalesce(string_agg(name || ' ' || line, E'\n' ORDER BY name, line), '') FROM (` + strings.Join(reads, " UNION ALL ") + `) x`
	return func(t testing.TB) string {
		t.Helper()
		rows, _ := conn.Query(ctx, all)
		text, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// execSQL runs statements, separated by semicolons.
func execSQL(t testing.TB, databaseURL, sql string) {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
