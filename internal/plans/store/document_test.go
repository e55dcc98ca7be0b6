package store_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/planstest"
)

// drawPlan is any plan that could be stored, defaults filled in.
func drawPlan(t *rapid.T) plans.PlanInput {
	number := rapid.Int64Range(0, model.MaxNumber)
	price := rapid.StringMatching(`[0-9]{1,15}(\.[0-9]{1,12})?`)
	text := rapid.StringMatching(`[ -~äπ🙂]{1,20}`)
	in := plans.PlanInput{
		Name: strings.TrimSpace("N" + text.Draw(t, "name")), Currency: "USD", Interval: "week", IntervalCount: 3, ApplyTo: "new",
		BaseIn: rapid.SampledFrom([]string{"arrears", "advance"}).Draw(t, "base_in"), MinimumMinor: number.Draw(t, "minimum"), BaseEvery: 1,
		BasePriceMinor: number.Draw(t, "base"), Meters: []string{"api"}, Features: map[string]any{},
		Limits: []plans.Limit{{Meter: "api", Spec: model.Spec{
			Name: "l", Algorithm: "token_bucket", Limit: number.Draw(t, "limit"),
			Window: "1s", Burst: planstest.Ptr(number.Draw(t, "burst")), Mode: "hard", OnOutage: "deny",
		}}, {Meter: "jobs", Spec: rapid.SampledFrom([]model.Spec{
			{Name: "m", Algorithm: "allocation", Limit: 5, Mode: "hard", OnOutage: "allow"},
			{Name: "m", Algorithm: "sliding_window", Limit: 5, Window: "1h", Mode: "hard", OnOutage: "allow"},
			{Name: "m", Algorithm: "fixed_window", Limit: 5, Window: "1h", Align: "first_hit", Mode: "hard", OnOutage: "allow"},
			{Name: "m", Algorithm: "fixed_window", Limit: 5, Window: "calendar_week", Mode: "hard", OnOutage: "deny"},
			{Name: "m", Algorithm: "fixed_window", Limit: 5, Window: "billing_period", Mode: "hard", OnOutage: "allow"},
		}).Draw(t, "other limit")}},
		Prices: []plans.Price{},
	}
	if in.BaseIn == plans.InAdvance {
		in.BaseEvery = rapid.IntRange(1, 120).Draw(t, "base_every")
	}
	for _, key := range rapid.SliceOfDistinct(rapid.StringMatching(`[a-z.:_-]{1,5}`), rapid.ID).Draw(t, "features") {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			in.Features[key] = rapid.Bool().Draw(t, "bool")
		case 1:
			in.Features[key] = rapid.Int64Range(-model.MaxNumber, model.MaxNumber).Draw(t, "int")
		case 2:
			in.Features[key] = text.Draw(t, "string")
		case 3:
			// -0.0 is stored as 0.0, which TestPlanDefaults looks at.
			n := rapid.StringMatching(`-?(0|[1-9][0-9]{0,14})\.[0-9]{0,11}[1-9]`).Draw(t, "decimal")
			in.Features[key] = json.Number(n)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "prices") {
		p := plans.Price{Meter: "api", Model: "volume", Included: number.Draw(t, "included")}
		for range rapid.IntRange(0, 3).Draw(t, "tiers") {
			p.Tiers = append(p.Tiers, plans.Tier{
				UpTo: planstest.Ptr(number.Draw(t, "up_to")), UnitPrice: price.Draw(t, "price"),
				FlatPrice: planstest.Ptr(price.Draw(t, "flat")),
			})
		}
		p.UnitPrice, p.PackageSize = planstest.Ptr(price.Draw(t, "unit")), planstest.Ptr(number.Draw(t, "size"))
		if rapid.Bool().Draw(t, "bounded") {
			least := number.Draw(t, "least")
			p.MinimumMinor, p.MaximumMinor = &least, planstest.Ptr(rapid.Int64Range(least, model.MaxNumber).Draw(t, "most"))
		}
		in.Prices = append(in.Prices, p)
	}
	return in
}

func TestDocumentsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawPlan(t)
		raw, err := in.Document()
		if err != nil {
			t.Fatal(err)
		}
		got, err := plans.ReadDocument(raw)
		if err != nil || !reflect.DeepEqual(got, in) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, in)
		}
	})
}

// And through the database, whose jsonb has numbers of its own.
func TestStoredPlansComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	planstest.Declare(t, s, "jobs")
	rapid.Check(t, func(rt *rapid.T) {
		in := drawPlan(rt)
		if len(in.Prices) > 1 {
			in.Prices = in.Prices[:1] // one a meter
		}
		for i := range in.Prices { // and a good one
			in.Prices[i] = plans.Price{
				Meter: "api", Model: "per_unit", UnitPrice: in.Prices[i].UnitPrice, Included: in.Prices[i].Included,
				MinimumMinor: in.Prices[i].MinimumMinor, MaximumMinor: in.Prices[i].MaximumMinor,
			}
		}
		// What one token weighs must fit: the arithmetic's own tests look at its bounds.
		in.Limits[0].Limit, in.Limits[0].Burst = in.Limits[0].Limit%1e9+1, planstest.Ptr(*in.Limits[0].Burst%1e9)
		wrote, _, err := s.PutPlan(t.Context(), "stored", in, anyIfExists(t, s, "stored"))
		if err != nil {
			rt.Fatal(err)
		}
		read, err := s.GetPlan(t.Context(), "stored")
		if err != nil || !reflect.DeepEqual(read.PlanInput, in) || !reflect.DeepEqual(wrote, read) {
			rt.Fatalf("got  %+v, %v\nwant %+v", read, err, in)
		}
	})
}

func anyIfExists(t testing.TB, s *store.Store, plan string) plans.Precondition {
	_, err := s.GetPlan(t.Context(), plan)
	return plans.Precondition{Given: err == nil, Any: true}
}

// The form in which plans are stored: what a release stored is read for ever.
func TestStoredDocuments(t *testing.T) {
	got, err := plans.ReadDocument([]byte(`{"name": "Pro", "limits": [{"mode": "hard", "name": "hourly", "align": "clock",
		"limit": 5000, "meter": "api", "window": "1h", "algorithm": "fixed_window", "on_outage": "allow"},
		{"mode": "hard", "name": "rate", "burst": 7, "limit": 999999999999999, "meter": "api", "window": "1s",
		"algorithm": "token_bucket", "on_outage": "deny"}], "meters": ["seats"], "prices": [{"model": "graduated",
		"meter": "api", "tiers": [{"up_to": 10, "unit_price": "0.5", "flat_price": "1"}, {"up_to": null,
		"unit_price": "0.4"}], "included": 3}, {"model": "package", "meter": "seats", "included": 0,
		"package_size": 10, "package_price": "1.5"}], "apply_to": "all", "currency": "USD",
		"features": {"sso": true, "seats": 5, "ratio": 1.50, "tier": "gold"}, "interval": "month",
		"interval_count": 2, "base_price_minor": 900, "base_in": "arrears", "base_every": 1}`))
	want := plans.PlanInput{
		Name: "Pro", Currency: "USD", Interval: "month", IntervalCount: 2, BasePriceMinor: 900, ApplyTo: "all", BaseIn: "arrears", BaseEvery: 1,
		Meters:   []string{"seats"},
		Features: map[string]any{"sso": true, "seats": int64(5), "ratio": json.Number("1.50"), "tier": "gold"},
		Limits: []plans.Limit{
			{Meter: "api", Spec: model.Spec{Name: "hourly", Algorithm: "fixed_window", Limit: 5000, Window: "1h", Align: "clock", Mode: "hard", OnOutage: "allow"}},
			{Meter: "api", Spec: model.Spec{
				Name: "rate", Algorithm: "token_bucket", Limit: model.MaxNumber, Window: "1s", Burst: planstest.Ptr(int64(7)),
				Mode: "hard", OnOutage: "deny",
			}},
		},
		Prices: []plans.Price{
			{Meter: "api", Model: "graduated", Included: 3, Tiers: []plans.Tier{{
				UpTo: planstest.Ptr(int64(10)), UnitPrice: "0.5",
				FlatPrice: planstest.Ptr("1"),
			}, {UpTo: nil, UnitPrice: "0.4", FlatPrice: nil}}},
			{Meter: "seats", Model: "package", PackageSize: planstest.Ptr(int64(10)), PackagePrice: planstest.Ptr("1.5")},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestBadDocumentsAreErrors(t *testing.T) {
	for _, bad := range []string{"", "[]", `{"limits":{}}`, `{"base_price_minor":1e30}`} {
		if _, err := plans.ReadDocument([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
