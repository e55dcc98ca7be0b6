package plans

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/quota/model"
)

func TestOverridesArePaged(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	in := hourly(5)
	for _, name := range []string{"b", "a", "c"} {
		in.Limits = append(in.Limits, Limit{"api", model.Spec{Name: name, Algorithm: "fixed_window", Limit: 3, Window: "1d"}})
	}
	putPlan(t, s, "basic", in)
	for _, name := range []string{"c", "a", "hourly", "b"} {
		if _, _, err := s.PutOverride(t.Context(), "acme", name, OverrideInput{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	page := Page{Limit: 3}
	for more := true; more; more = page.Cursor != "" {
		list := must[*List[*Override]](t)(s.ListOverrides(t.Context(), "acme", page))
		for _, o := range list.Items {
			names = append(names, o.Name)
		}
		page.Cursor = list.Next
	}
	if !slices.Equal(names, []string{"a", "b", "c", "hourly"}) {
		t.Errorf("got %q", names)
	}
	putCustomer(t, s, "bolt", onPlan("basic"))
	cursor := must[*List[*Override]](t)(s.ListOverrides(t.Context(), "acme", Page{Limit: 1})).Next
	if _, err := s.ListOverrides(t.Context(), "bolt", Page{Cursor: cursor}); !slices.Equal(fields(err), []string{"cursor"}) {
		t.Errorf("another customer's cursor: %v", err)
	}
}

func TestOverrideFaults(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	in := hourly(5)
	in.Limits = append(in.Limits, Limit{"api", model.Spec{Name: "rate", Algorithm: "token_bucket", Limit: 10, Window: "3600d"}})
	putPlan(t, s, "basic", in)
	before := changeNumber(t, s)
	for name, c := range map[string]struct {
		limit string
		in    OverrideInput
		want  []string
	}{
		"negative":       {"hourly", OverrideInput{Limit: -1}, []string{"limit"}},
		"huge":           {"hourly", OverrideInput{Limit: model.MaxNumber + 1}, []string{"limit"}},
		"no bucket":      {"hourly", OverrideInput{Limit: 1, Burst: ptr(int64(1))}, []string{"burst"}},
		"burst":          {"rate", OverrideInput{Limit: 1, Burst: ptr(int64(-1))}, []string{"burst"}},
		"closed":         {"rate", OverrideInput{Limit: 0, Burst: ptr(int64(1))}, []string{"burst"}},
		"64 bits":        {"rate", OverrideInput{Limit: model.MaxNumber}, []string{"limit"}},
		"expired":        {"hourly", OverrideInput{Limit: 1, ExpiresAt: ptr(databaseNow(t, s).Add(-time.Second))}, []string{"expires_at"}},
		"beyond RFC3339": {"hourly", OverrideInput{Limit: 1, ExpiresAt: ptr(time.Date(10000, 1, 1, 0, 59, 59, 0, time.UTC))}, []string{"expires_at"}},
		"several":        {"hourly", OverrideInput{Limit: -1, ExpiresAt: ptr(time.Unix(0, 0))}, []string{"limit", "expires_at"}},
	} {
		if _, _, err := s.PutOverride(t.Context(), "acme", c.limit, c.in); !slices.Equal(fields(err), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for _, limit := range []string{"nope", "", "a/b", "a\x00"} {
		_, _, err := s.PutOverride(t.Context(), "acme", limit, OverrideInput{Limit: 1})
		if !errors.Is(err, ErrUnknownLimit) || !strings.Contains(err.Error(), "version 2 of plan basic, which is in force for it, has hourly, rate") {
			t.Errorf("%q: %v", limit, err)
		}
	}
	for _, customer := range []string{"nope", "", "a/b"} {
		_, _, err := s.PutOverride(t.Context(), customer, "hourly", OverrideInput{Limit: 1})
		_, list := s.ListOverrides(t.Context(), customer, Page{})
		if ended := s.DeleteOverride(t.Context(), customer, "hourly"); !errors.Is(err, ErrUnknownCustomer) || !errors.Is(ended, ErrUnknownCustomer) || !errors.Is(list, ErrUnknownCustomer) {
			t.Errorf("%q: %v, %v, %v", customer, err, ended, list)
		}
	}
	if changeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
	if err := s.ArchiveCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.PutOverride(t.Context(), "acme", "hourly", OverrideInput{Limit: 1})
	if ended := s.DeleteOverride(t.Context(), "acme", "hourly"); !errors.Is(err, ErrArchived) || !errors.Is(ended, ErrArchived) {
		t.Errorf("archived: %v, %v", err, ended)
	}
}
