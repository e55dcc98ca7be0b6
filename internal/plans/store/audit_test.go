package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit/planstest"
)

// No statement changes the audit trail, nor deletes what is younger than the retention. What
// tells of somebody may be taken out only if the customer is erased.
func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	ctx := plans.As(t.Context(), plans.Actor{By: "me", Request: "r"})
	c, _, err := s.PutCustomer(ctx, "person", planstest.OnPlan("basic"), plans.Precondition{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetSetting(t.Context(), plans.Setting{Name: "audit-retention", Value: "36h30m"}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"UPDATE audit SET actor = 'you'", "UPDATE audit SET after = '{}'", "UPDATE audit SET after = NULL", "UPDATE audit SET target = 'x'",
		"UPDATE audit SET scrubbed = true, before = NULL, after = NULL", "DELETE FROM audit", "TRUNCATE audit",
	} {
		if _, err := s.Pool().Exec(ctx, statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if _, err := s.EraseCustomer(ctx, "person"); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"UPDATE audit SET actor = 'you'", "UPDATE audit SET at = now()", "UPDATE audit SET after = '{}'"} {
		if _, err := s.Pool().Exec(ctx, statement); err == nil {
			t.Errorf("%s is let by, as the customer is erased", statement)
		}
	}
	if n := planstest.Count(t, s, "count(*) FROM audit WHERE scrubbed AND before IS NULL AND after IS NULL AND customer IS NOT NULL"); n != 2 {
		t.Errorf("%d entries of customer %d are scrubbed", n, c.ID)
	}
	for age, deleted := range map[string]int64{"36 hours 20 minutes": 0, "36 hours 40 minutes": 1} {
		if _, err := s.Pool().Exec(ctx,
			`INSERT INTO audit (at, actor, request, action, subject, target) VALUES (now() - $1::interval, 'old', '', '', '', '')`, age); err != nil {
			t.Fatal(err)
		}
		done, err := s.Pool().Exec(ctx, "DELETE FROM audit WHERE actor = 'old' AND at < now() - interval '36 hours 30 minutes'")
		if err != nil || done.RowsAffected() != deleted {
			t.Errorf("of the age %s: %d, %v", age, done.RowsAffected(), err)
		}
	}
	if _, err := s.Pool().Exec(ctx, "DELETE FROM audit WHERE actor = 'old'"); err == nil {
		t.Error("a younger one was deleted")
	}
}

// A write that an actor makes and that nobody audits is not done.
func TestWritesMustBeAudited(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	before := planstest.ChangeNumber(t, s)
	nothing := func(context.Context, *store.Writing) error { return nil }
	if err := s.Write(plans.As(t.Context(), plans.Actor{By: "me"}), store.KindPlan, "x", nothing); err == nil {
		t.Error("it was done")
	}
	if n := planstest.ChangeNumber(t, s); n != before {
		t.Errorf("it left change %d", n)
	}
	if err := s.Write(plans.Itself(plans.As(t.Context(), plans.Actor{By: "me"})), store.KindPlan, "x", nothing); err != nil {
		t.Errorf("quotad's own: %v", err)
	}
	if n := planstest.Count(t, s, "count(*) FROM audit"); n != 0 {
		t.Errorf("%d entries of quotad's own changes", n)
	}
}

// Keys that are made at the start, and by commands, are audited without their secrets.
func TestKeysAreAudited(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	ctx := plans.As(t.Context(), plans.Actor{By: plans.ActorStart})
	secret, err := s.FirstAdminKey(ctx, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureKey(ctx, "0123456789abcdef", "chosen", plans.ScopeAdmin); err != nil {
		t.Fatal(err)
	}
	entries := planstest.Must[*plans.List[plans.AuditEntry]](t)(s.AuditEntries(t.Context(), plans.AuditFilter{Actor: plans.ActorStart}, plans.Page{}))
	if len(entries.Items) != 2 || time.Since(entries.Items[0].At).Abs() > time.Minute {
		t.Errorf("%+v", entries.Items)
	}
	for _, e := range entries.Items {
		if text := string(e.After); !strings.Contains(text, "admin") || strings.Contains(text, secret) || strings.Contains(text, "0123456789abcdef") {
			t.Errorf("%s", text)
		}
	}
}

// A page of long entries ends before its limit, and the pages together have each entry once.
func TestAuditPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	const entries, long = 400, 8000 // bytes of each document
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO audit (actor, request, action, subject, target, before, after)
		SELECT 'long', '', '', '', n::text, jsonb_build_object('x', repeat('b', $2)), jsonb_build_object('x', repeat('a', $2))
		FROM generate_series(1, $1::integer) n`, entries, long); err != nil {
		t.Fatal(err)
	}
	seen, pages := map[string]bool{}, 0
	for page := (plans.Page{Limit: plans.MaxPage}); ; pages++ {
		got, err := s.AuditEntries(t.Context(), plans.AuditFilter{Actor: "long"}, page)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, e := range got.Items {
			seen[e.Target], size = true, size+len(e.Before)+len(e.After)
		}
		if full := size+2*(long+100) > 1<<20; size > 1<<20 || got.Next != "" && !full {
			t.Errorf("a page has %d entries of %d bytes together, and then %q", len(got.Items), size, got.Next)
		}
		if got.Next == "" {
			break
		}
		page.Cursor = got.Next
	}
	if len(seen) != entries || pages < 5 {
		t.Errorf("%d pages have %d of %d entries", pages+1, len(seen), entries)
	}
	short, err := s.AuditEntries(t.Context(), plans.AuditFilter{Actor: "long"}, plans.Page{Limit: 7})
	if err != nil || len(short.Items) != 7 || short.Next == "" {
		t.Errorf("a page of 7 has %d, %v", len(short.Items), err)
	}
}

// Filters are found by their indexes, however many entries there are.
func TestAuditUsesItsIndexes(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO audit (at, actor, request, action, subject, target)
		SELECT now() - n * interval '1 minute', 'a' || n % 50, '', '', 'customers/c' || n % 500, 'customers/c' || n % 500 FROM generate_series(1, 20000) n`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool().Exec(t.Context(), "ANALYZE audit"); err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(-time.Hour).UnixMicro()
	for index, f := range map[string]plans.AuditFilter{
		"audit_first_actor_at_id_idx": {Actor: "a7"}, "audit_first_subject_at_id_idx": {Target: "customers/c7"}, "audit_first_at_id_idx": {From: &from},
	} {
		statement, args := store.AuditQuery(f, 101)
		var plan strings.Builder
		rows, _ := s.Pool().Query(t.Context(), "EXPLAIN "+statement, args...)
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if rows.Err() != nil || !strings.Contains(plan.String(), index) || strings.Contains(plan.String(), "Seq Scan on audit_first") {
			t.Errorf("%v: %v\n%s", f, rows.Err(), plan.String())
		}
	}
}
