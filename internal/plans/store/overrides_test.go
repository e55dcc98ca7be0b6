package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/planstest"
)

func TestOverridesArePaged(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	in := planstest.Hourly(5)
	for _, name := range []string{"b", "a", "c"} {
		in.Limits = append(in.Limits, plans.Limit{Meter: "api", Spec: model.Spec{Name: name, Algorithm: "fixed_window", Limit: 3, Window: "1d"}})
	}
	planstest.PutPlan(t, s, "basic", in)
	for _, name := range []string{"c", "a", "hourly", "b"} {
		if _, _, err := s.PutOverride(t.Context(), "acme", name, plans.OverrideInput{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	page := plans.Page{Limit: 3}
	for more := true; more; more = page.Cursor != "" {
		list := planstest.Must[*plans.List[*plans.Override]](t)(s.ListOverrides(t.Context(), "acme", page))
		for _, o := range list.Items {
			names = append(names, o.Name)
		}
		page.Cursor = list.Next
	}
	if !slices.Equal(names, []string{"a", "b", "c", "hourly"}) {
		t.Errorf("got %q", names)
	}
	planstest.PutCustomer(t, s, "bolt", planstest.OnPlan("basic"))
	cursor := planstest.Must[*plans.List[*plans.Override]](t)(s.ListOverrides(t.Context(), "acme", plans.Page{Limit: 1})).Next
	if _, err := s.ListOverrides(t.Context(), "bolt", plans.Page{Cursor: cursor}); !slices.Equal(planstest.Fields(err), []string{"cursor"}) {
		t.Errorf("another customer's cursor: %v", err)
	}
}

func TestOverrideFaults(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	in := planstest.Hourly(5)
	in.Limits = append(in.Limits, plans.Limit{Meter: "api", Spec: model.Spec{Name: "rate", Algorithm: "token_bucket", Limit: 10, Window: "3600d"}})
	planstest.PutPlan(t, s, "basic", in)
	before := planstest.ChangeNumber(t, s)
	for name, c := range map[string]struct {
		limit string
		in    plans.OverrideInput
		want  []string
	}{
		"negative":       {"hourly", plans.OverrideInput{Limit: -1}, []string{"limit"}},
		"huge":           {"hourly", plans.OverrideInput{Limit: model.MaxNumber + 1}, []string{"limit"}},
		"no bucket":      {"hourly", plans.OverrideInput{Limit: 1, Burst: planstest.Ptr(int64(1))}, []string{"burst"}},
		"burst":          {"rate", plans.OverrideInput{Limit: 1, Burst: planstest.Ptr(int64(-1))}, []string{"burst"}},
		"closed":         {"rate", plans.OverrideInput{Limit: 0, Burst: planstest.Ptr(int64(1))}, []string{"burst"}},
		"64 bits":        {"rate", plans.OverrideInput{Limit: model.MaxNumber}, []string{"limit"}},
		"expired":        {"hourly", plans.OverrideInput{Limit: 1, ExpiresAt: planstest.Ptr(planstest.DatabaseNow(t, s).Add(-time.Second))}, []string{"expires_at"}},
		"beyond RFC3339": {"hourly", plans.OverrideInput{Limit: 1, ExpiresAt: planstest.Ptr(time.Date(10000, 1, 1, 0, 59, 59, 0, time.UTC))}, []string{"expires_at"}},
		"several":        {"hourly", plans.OverrideInput{Limit: -1, ExpiresAt: planstest.Ptr(time.Unix(0, 0))}, []string{"limit", "expires_at"}},
	} {
		if _, _, err := s.PutOverride(t.Context(), "acme", c.limit, c.in); !slices.Equal(planstest.Fields(err), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for _, limit := range []string{"nope", "", "a/b", "a\x00"} {
		_, _, err := s.PutOverride(t.Context(), "acme", limit, plans.OverrideInput{Limit: 1})
		if !errors.Is(err, plans.ErrUnknownLimit) || !strings.Contains(err.Error(), "version 2 of plan basic, which is in force for it, has hourly, rate") {
			t.Errorf("%q: %v", limit, err)
		}
	}
	for _, customer := range []string{"nope", "", "a/b"} {
		_, _, err := s.PutOverride(t.Context(), customer, "hourly", plans.OverrideInput{Limit: 1})
		_, list := s.ListOverrides(t.Context(), customer, plans.Page{})
		if ended := s.DeleteOverride(t.Context(), customer, "hourly"); !errors.Is(err, plans.ErrUnknownCustomer) ||
			!errors.Is(ended, plans.ErrUnknownCustomer) || !errors.Is(list, plans.ErrUnknownCustomer) {
			t.Errorf("%q: %v, %v, %v", customer, err, ended, list)
		}
	}
	if planstest.ChangeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
	if err := s.ArchiveCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.PutOverride(t.Context(), "acme", "hourly", plans.OverrideInput{Limit: 1})
	if ended := s.DeleteOverride(t.Context(), "acme", "hourly"); !errors.Is(err, plans.ErrArchived) || !errors.Is(ended, plans.ErrArchived) {
		t.Errorf("archived: %v, %v", err, ended)
	}
}
