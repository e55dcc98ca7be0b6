package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestCustomersFeatures(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	planstest.Declare(t, s, "api")
	in := planstest.Hourly(5)
	in.Features = map[string]any{"sso": false, "seats": int64(5), "tier": "gold"}
	planstest.PutPlan(t, s, "basic", in)
	customer := planstest.OnPlan("basic")
	customer.Features = map[string]any{"sso": true, "huge": json.Number("900719925474099.000000000001"), "big": json.Number("999999999999999"), "note": "ä"}
	stored := map[string]any{"sso": true, "huge": json.Number("900719925474099.000000000001"), "big": int64(999999999999999), "note": "ä"}
	if put := planstest.PutCustomer(t, s, "acme", customer); !maps.Equal(put.Features, stored) {
		t.Errorf("stored %v", put.Features)
	}
	planstest.PutCustomer(t, s, "plain", planstest.OnPlan("basic"))
	shown := func(customer string) *plans.Plan {
		t.Helper()
		return planstest.Must[*Account](t)(c.Meters(t.Context(), customer)).Plan
	}
	merged := maps.Clone(stored)
	merged["seats"], merged["tier"] = int64(5), "gold"
	if p := shown("acme"); !maps.Equal(p.Features, merged) || p.Version != 1 || len(p.Limits) != 1 {
		t.Errorf("merged %v", p.Features)
	}
	if first, second := shown("acme"), shown("acme"); first != second {
		t.Error("merged for each who asks")
	}
	if p := shown("plain"); !maps.Equal(p.Features, in.Features) {
		t.Errorf("another customer has %v", p.Features)
	}
	if put := planstest.PutCustomer(t, s, "acme", planstest.OnPlan("basic")); put.Features == nil || len(put.Features) != 0 {
		t.Errorf("left out: %v", put.Features)
	}
	if p := shown("acme"); p != shown("plain") {
		t.Errorf("a copy without need: %v", p.Features)
	}
	customer.Features = map[string]any{"a b": true, "list": []any{}, "nul": "\x00", "ok": 1, "fraction": json.Number("1e3")}
	_, _, err := s.PutCustomer(t.Context(), "acme", customer, planstest.AnyVersion)
	if got := planstest.Fields(err); !slices.Equal(got, []string{"features", "features.fraction", "features.list", "features.nul"}) {
		t.Errorf("got %q", got)
	}
}
