package store_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit"
	"quotad/internal/testkit/planstest"
)

// TestFindCustomers: by the beginning of the key, and by any words of the name, in any case, in
// pages of every size.
func TestFindCustomers(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	for key, name := range map[string]string{
		"k1": "Müller & Söhne GmbH", "k2": "MÜLLER Brothers", "k3": "Foo-Bar, Inc.", "k4": `O'Neil \ "Quote"`,
		"k5": "ΟΔΥΣΣΕΥΣ", "k6": "Ромашка Ёлка", "k7": "Łódź ØSTER", "k8": "1&1", "k9": strings.Repeat("한", 200), "muller": "Another",
	} {
		in := planstest.OnPlan("basic")
		in.Name = name
		planstest.PutCustomer(t, s, key, in)
	}
	for search, want := range map[string]string{
		"müller": "k1 k2", "MULLER": "k1 k2", "muller": "k1 k2 muller", "söhne mül": "k1", "gmbh": "k1", "ohne": "",
		"brothers müller": "k2", "foo bar": "k3", "bar-foo": "k3", "FOO": "k3", "o'neil": "k4", "quote": "k4", `\ '`: "", "'": "",
		"οδυσσευς": "k5", "ΟΔΥΣΣΕΎς": "k5", "РОМАШКА елка": "k6", "ёл": "k6", "łódź": "k7", "øst": "k7", "1": "k8", "한한": "k9",
		"k": "k1 k2 k3 k4 k5 k6 k7 k8 k9", " k1 ": "k1", "k1 ": "k1", "K1": "", "mu": "k1 k2 muller", ".": "", "a/b": "", "%": "",
	} {
		walk(t, search, strings.Fields(want), func(p plans.Page) (*plans.List[*plans.Customer], error) {
			return s.FindCustomers(t.Context(), search, p)
		},
			func(c *plans.Customer) string { return c.Key })
	}
	if _, err := s.EraseCustomer(t.Context(), "k7"); err != nil {
		t.Fatal(err)
	}
	if list := planstest.Must[*plans.List[*plans.Customer]](t)(s.FindCustomers(t.Context(), "lódz", plans.Page{})); len(list.Items) > 0 {
		t.Errorf("an erased customer is found by its name: %+v", list.Items[0])
	}
}

// TestFindingIsFast: among many customers their names are found by the index, and common words and
// rare ones take little time, which the long form measures, whether PostgreSQL has counted the words yet
// or not.
func TestFindingIsFast(t *testing.T) {
	t.Parallel()
	customers := 100_000
	switch {
	case testing.Short():
		customers = 20_000
	case os.Getenv("QUOTAD_TEST_LONG") != "":
		customers = 1_000_000
	}
	s := planstest.PopulatedStore(t)
	ctx := testkit.Context(t)
	conn := planstest.Must[*pgxpool.Conn](t)(s.Pool().Acquire(ctx))
	defer conn.Release()
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("SET statement_timeout = 0")
	run("ALTER TABLE customers SET (autovacuum_enabled = off)")
	var index string
	if err := conn.QueryRow(ctx, "SELECT pg_get_indexdef('customers_words'::regclass)").Scan(&index); err != nil {
		t.Fatal(err)
	}
	run("DROP INDEX customers_words") // which is slow to fill row by row
	run(`INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'cus_' || md5(n::text), 'Inc ' || left(md5(n::text), 4) || ' Word' || n, (SELECT min(id) FROM plans), 1, 'UTC', '2026-01-01T00:00:00', 1
		FROM generate_series(1, $1::integer) n`, customers)
	run(index)
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			run("ANALYZE customers")
		}
		for _, search := range []string{"word777", "nothing", "inc", "inc a1", "inc nothing", "cus_", "w"} {
			var plan strings.Builder
			rows, _ := s.Pool().Query(ctx, "EXPLAIN "+store.FindCustomersSQL, "", search, "", "", 51)
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				plan.WriteString(line + "\n")
			}
			if rows.Err() != nil || !strings.Contains(plan.String(), "Bitmap Index Scan on customers_words") || strings.Contains(plan.String(), "Seq Scan on customers") {
				t.Errorf("%s, analyzed %t: %v\n%s", search, analyzed, rows.Err(), plan.String())
			}
			began := time.Now()
			list := planstest.Must[*plans.List[*plans.Customer]](t)(s.FindCustomers(ctx, search, plans.Page{Limit: 50}))
			took := time.Since(began)
			if found := len(list.Items) > 0; found == slices.Contains([]string{"nothing", "inc nothing"}, search) {
				t.Errorf("%s: found %t", search, found)
			}
			t.Logf("analyzed %t, %s: %s", analyzed, search, took)
			testkit.AtMost(t, search, took, 5*time.Second)
		}
	}
}
