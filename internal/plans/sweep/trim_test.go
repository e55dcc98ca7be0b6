package sweep

import (
	"fmt"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit/planstest"
)

// A month goes as a whole when all of it is older than the retention. Of entries that no month was made
// for, those that are older go, in pieces. Nothing else goes.
func TestTrim(t *testing.T) {
	t.Parallel()
	s, ctx := planstest.PopulatedStore(t), t.Context()
	if err := s.SetSetting(ctx, plans.Setting{Name: "audit-retention", Value: "48h"}); err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.Pool().Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	old := planstest.DatabaseNow(t, s).UTC().Add(-48 * time.Hour)
	first := time.Date(old.Year(), old.Month(), 1, 0, 0, 0, 0, time.UTC) // of the month in which the retention ends
	exec("DROP TABLE audit_first")                                       // it has all months so far
	for _, n := range []int{-3, -1, 0} {
		from, to := first.AddDate(0, n, 0), first.AddDate(0, n+1, 0)
		exec(fmt.Sprintf("CREATE TABLE audit_%d PARTITION OF audit FOR VALUES FROM ('%s') TO ('%s')", n+3, from.Format(time.RFC3339), to.Format(time.RFC3339)))
	}
	insert := func(at time.Time, n int) {
		t.Helper()
		exec(`INSERT INTO audit (at, actor, request, action, subject, target) SELECT $1, 'a', '', '', '', '' FROM generate_series(1, $2::int)`, at, n)
	}
	for _, n := range []int{-3, -1, 0} {
		insert(first.AddDate(0, n, 0), 1)                     // the first instant of a month
		insert(first.AddDate(0, n+1, 0).Add(-time.Second), 1) // and nearly its last
	}
	insert(first.AddDate(0, -2, 0), 2*trimRows+1)
	insert(first.AddDate(0, 5, 0), 1)
	if err := NewTrimmer(s, 48*time.Hour, nil).trim(ctx); err != nil {
		t.Fatal(err)
	}
	const left = `SELECT string_agg(part || ' ' || n, ', ' ORDER BY part) FROM (SELECT tableoid::regclass::text AS part, count(*) AS n FROM audit GROUP BY 1) p`
	var got string
	if err := s.Pool().QueryRow(ctx, left).Scan(&got); err != nil || got != "audit_3 2, audit_default 1" {
		t.Errorf("left are %s, %v", got, err)
	}
	if n := planstest.Count(t, s, "count(*) FROM pg_inherits WHERE inhparent = 'audit'::regclass"); n != 2 {
		t.Errorf("%d partitions are left", n)
	}
}

// Of an erased customer with more entries than the erasure scrubs at once, a sweep scrubs the
// rest, and those that came later.
func TestScrubOfManyAuditEntries(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	c := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), "acme"))
	const fill = `INSERT INTO audit (actor, request, action, subject, target, customer, after)
		SELECT 'a', '', 'change', 'customers/acme', 'customers/acme/charges/acme', $1, '{"name":"acme"}' FROM generate_series(1, $2) n`
	if _, err := s.Pool().Exec(t.Context(), fill, c.ID, 2*store.ScrubRows); err != nil {
		t.Fatal(err)
	}
	if _, err := s.EraseCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	left := func() int64 { return planstest.Count(t, s, "count(*) FROM audit a WHERE a::text LIKE '%acme%'") }
	if n := left(); n != store.ScrubRows {
		t.Errorf("%d are left", n)
	}
	if _, err := s.Pool().Exec(t.Context(), fill, c.ID, 5); err != nil {
		t.Fatal(err)
	}
	if err := sweeperOf(s).scrub(t.Context(), planstest.DatabaseNow(t, s).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
