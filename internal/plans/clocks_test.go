package plans

import (
	"errors"
	"slices"
	"testing"

	"quotad/internal/quota/model"
)

func TestTestClocks(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	ctx := t.Context()
	last := instant("9000-01-01T00:00:00Z")
	early, late := instant("2026-01-01T00:00:00.000001Z"), instant("2026-03-01T00:00:00Z")
	for i, c := range []struct {
		now     int64
		created bool
		changes int64
	}{{late, true, 1}, {late, false, 0}, {early, false, 1}, {0, false, 1}, {last, false, 1}} {
		before := changeNumber(t, s)
		clock, created, err := s.PutTestClock(ctx, "c1", c.now)
		if err != nil || created != c.created || clock != (model.TestClock{Key: "c1", Now: c.now}) || changeNumber(t, s) != before+c.changes {
			t.Errorf("%d: %+v %v %v", i, clock, created, err)
		}
		if got, err := s.GetTestClock(ctx, "c1"); err != nil || got != clock {
			t.Errorf("%d: %+v %v", i, got, err)
		}
	}
	before := changeNumber(t, s)
	for key, c := range map[string]struct {
		now  int64
		want []string
	}{"c1": {-1, []string{"now"}}, "c2": {last + 1, []string{"now"}}, "a/b": {0, []string{"key"}}, "": {-1, []string{"key", "now"}}} {
		if _, _, err := s.PutTestClock(ctx, key, c.now); !slices.Equal(fields(err), c.want) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if changeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
	for _, key := range []string{"none", "", "a/b"} {
		if _, err := s.GetTestClock(ctx, key); !errors.Is(err, ErrUnknownClock) {
			t.Errorf("%q: %v", key, err)
		}
	}
	setClock(t, s, "c0", "2026-01-01T00:00:00Z")
	first := must[*List[model.TestClock]](t)(s.ListTestClocks(ctx, Page{Limit: 1}))
	second := must[*List[model.TestClock]](t)(s.ListTestClocks(ctx, Page{Limit: 1, Cursor: first.Next}))
	if first.Items[0].Key != "c0" || second.Items[0].Key != "c1" || second.Next != "" {
		t.Errorf("%+v %+v", first, second)
	}
}

func TestCustomersStayOnTheirClock(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	setClock(t, s, "c1", "2026-01-31T23:30:00Z")
	setClock(t, s, "c2", "2026-01-01T00:00:00Z")
	with := func(clock *string) CustomerInput {
		in := onPlan("basic")
		in.Timezone, in.TestClock = "Europe/Berlin", clock
		return in
	}
	made := putCustomer(t, s, "timed", with(ptr("c1")))
	if made.TestClock == nil || *made.TestClock != "c1" || made.Clock.Now != instant("2026-01-31T23:30:00Z") ||
		made.BillingAnchor != "2026-02-01T00:30:00" {
		t.Errorf("%+v", made)
	}
	for name, in := range map[string]CustomerInput{"left out": with(nil), "the same": with(ptr("c1"))} {
		if kept := putCustomer(t, s, "timed", in); kept.TestClock == nil || *kept.TestClock != "c1" || kept.BillingAnchor != made.BillingAnchor {
			t.Errorf("%s: %+v", name, kept)
		}
	}
	before := changeNumber(t, s)
	for name, c := range map[string]struct{ customer, clock string }{
		"another": {"timed", "c2"}, "none such": {"timed", "c3"}, "from real time": {"acme", "c1"}, "new, none such": {"new", "c3"}, "malformed": {"new", "a/b"}, "empty": {"new", ""},
	} {
		_, _, err := s.PutCustomer(t.Context(), c.customer, with(&c.clock), Precondition{})
		if errors.Is(err, ErrPreconditionRequired) {
			_, _, err = s.PutCustomer(t.Context(), c.customer, with(&c.clock), anyVersion)
		}
		if !slices.Equal(fields(err), []string{"test_clock"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	setClock(t, s, "far", "2500-01-01T00:00:00Z")
	in := with(ptr("far"))
	if _, _, err := s.PutCustomer(t.Context(), "far", in, Precondition{}); !slices.Equal(fields(err), []string{"billing_anchor"}) {
		t.Errorf("an anchor beyond 2200: %v", err)
	}
	if got := changeNumber(t, s); got != before+1 { // the clock
		t.Errorf("what was refused left %d changes", got-before-1)
	}
	in.BillingAnchor = "2026-01-01T00:00:00"
	putCustomer(t, s, "far", in)
}
