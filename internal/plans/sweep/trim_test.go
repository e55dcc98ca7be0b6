package sweep

import (
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit/planstest"
)

// What is older than the retention goes, in pieces, and nothing else.
func TestTrim(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	if err := s.SetSetting(t.Context(), plans.Setting{Name: "audit-retention", Value: "48h"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO audit (at, actor, request, action, subject, target)
		SELECT now() - n * interval '1 minute', 'a', '', '', '', '' FROM generate_series(1, 48 * 60 + 2 * $1::bigint) n`, trimRows); err != nil {
		t.Fatal(err)
	}
	if err := NewTrimmer(s, 48*time.Hour, nil).trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A minute may have passed since.
	if n := planstest.Count(t, s, "count(*) FROM audit"); n < 48*60-2 || n > 48*60 {
		t.Errorf("%d are left", n)
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
