package store_test

import (
	"errors"
	"slices"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/planstest"
)

func TestTestClocks(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	ctx := t.Context()
	last := planstest.Instant("9000-01-01T00:00:00Z")
	early, late := planstest.Instant("2026-01-01T00:00:00.000001Z"), planstest.Instant("2026-03-01T00:00:00Z")
	for i, c := range []struct {
		now     int64
		created bool
		changes int64
	}{{late, true, 1}, {late, false, 0}, {early, false, 1}, {0, false, 1}, {last, false, 1}} {
		before := planstest.ChangeNumber(t, s)
		clock, created, err := s.PutTestClock(ctx, "c1", c.now)
		if err != nil || created != c.created || clock != (model.TestClock{Key: "c1", Now: c.now}) || planstest.ChangeNumber(t, s) != before+c.changes {
			t.Errorf("%d: %+v %v %v", i, clock, created, err)
		}
		if got, err := s.GetTestClock(ctx, "c1"); err != nil || got != clock {
			t.Errorf("%d: %+v %v", i, got, err)
		}
	}
	before := planstest.ChangeNumber(t, s)
	for key, c := range map[string]struct {
		now  int64
		want []string
	}{"c1": {-1, []string{"now"}}, "c2": {last + 1, []string{"now"}}, "a/b": {0, []string{"key"}}, "any": {0, []string{"key"}}, "": {-1, []string{"key", "now"}}} {
		if _, _, err := s.PutTestClock(ctx, key, c.now); !slices.Equal(planstest.Fields(err), c.want) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if planstest.ChangeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
	for _, key := range []string{"none", "", "a/b"} {
		if _, err := s.GetTestClock(ctx, key); !errors.Is(err, plans.ErrUnknownClock) {
			t.Errorf("%q: %v", key, err)
		}
	}
	// One that was made before "any" was refused stays, and is set as ever.
	if _, err := s.Pool().Exec(ctx, `INSERT INTO test_clocks (key, now, change) VALUES ('any', 0, 1)`); err != nil {
		t.Fatal(err)
	}
	if _, created, err := s.PutTestClock(ctx, "any", late); err != nil || created {
		t.Errorf("an existing clock: created %v, %v", created, err)
	}
	if _, err := s.Pool().Exec(ctx, `DELETE FROM test_clocks WHERE key = 'any'`); err != nil {
		t.Fatal(err)
	}
	planstest.SetClock(t, s, "c0", "2026-01-01T00:00:00Z")
	first := planstest.Must[*plans.List[model.TestClock]](t)(s.ListTestClocks(ctx, plans.Page{Limit: 1}))
	second := planstest.Must[*plans.List[model.TestClock]](t)(s.ListTestClocks(ctx, plans.Page{Limit: 1, Cursor: first.Next}))
	if first.Items[0].Key != "c0" || second.Items[0].Key != "c1" || second.Next != "" {
		t.Errorf("%+v %+v", first, second)
	}
}

func TestCustomersStayOnTheirClock(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	planstest.SetClock(t, s, "c1", "2026-01-31T23:30:00Z")
	planstest.SetClock(t, s, "c2", "2026-01-01T00:00:00Z")
	with := func(clock *string) plans.CustomerInput {
		in := planstest.OnPlan("basic")
		in.Timezone, in.TestClock = "Europe/Berlin", clock
		return in
	}
	made := planstest.PutCustomer(t, s, "timed", with(planstest.Ptr("c1")))
	if made.TestClock == nil || *made.TestClock != "c1" || made.Clock.Now != planstest.Instant("2026-01-31T23:30:00Z") ||
		made.BillingAnchor != "2026-02-01T00:30:00" {
		t.Errorf("%+v", made)
	}
	for name, in := range map[string]plans.CustomerInput{"left out": with(nil), "the same": with(planstest.Ptr("c1"))} {
		if kept := planstest.PutCustomer(t, s, "timed", in); kept.TestClock == nil || *kept.TestClock != "c1" || kept.BillingAnchor != made.BillingAnchor {
			t.Errorf("%s: %+v", name, kept)
		}
	}
	before := planstest.ChangeNumber(t, s)
	for name, c := range map[string]struct{ customer, clock string }{
		"another": {"timed", "c2"}, "none such": {"timed", "c3"}, "from real time": {"acme", "c1"}, "new, none such": {"new", "c3"},
		"malformed": {"new", "a/b"}, "empty": {"new", ""},
	} {
		_, _, err := s.PutCustomer(t.Context(), c.customer, with(&c.clock), plans.Precondition{})
		if errors.Is(err, plans.ErrPreconditionRequired) {
			_, _, err = s.PutCustomer(t.Context(), c.customer, with(&c.clock), planstest.AnyVersion)
		}
		if !slices.Equal(planstest.Fields(err), []string{"test_clock"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	planstest.SetClock(t, s, "far", "2500-01-01T00:00:00Z")
	in := with(planstest.Ptr("far"))
	if _, _, err := s.PutCustomer(t.Context(), "far", in, plans.Precondition{}); !slices.Equal(planstest.Fields(err), []string{"billing_anchor"}) {
		t.Errorf("an anchor beyond 2200: %v", err)
	}
	if got := planstest.ChangeNumber(t, s); got != before+1 { // the clock
		t.Errorf("what was refused left %d changes", got-before-1)
	}
	in.BillingAnchor = "2026-01-01T00:00:00"
	planstest.PutCustomer(t, s, "far", in)
}
