package store_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestMeters(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	m, created, err := s.PutMeter(ctx, "api", plans.PutMeterInput{Unit: "request", Name: "API"})
	if err != nil || !created || m.Key != "api" || m.Unit != "request" || m.Name != "API" || m.ID == 0 {
		t.Fatalf("%+v %v %v", m, created, err)
	}
	again, created, err := s.PutMeter(ctx, "api", plans.PutMeterInput{Unit: "call"})
	if err != nil || created || again != (plans.Meter{Key: "api", Unit: "call", ID: m.ID}) {
		t.Errorf("%+v %v %v", again, created, err)
	}
	before := planstest.ChangeNumber(t, s)
	if same, _, err := s.PutMeter(ctx, "api", plans.PutMeterInput{Unit: "call"}); err != nil || same != again || planstest.ChangeNumber(t, s) != before {
		t.Errorf("writing the same again: %+v %v, change %d after %d", same, err, planstest.ChangeNumber(t, s), before)
	}
	if got, err := s.GetMeter(ctx, "api"); err != nil || got != again {
		t.Errorf("%+v %v", got, err)
	}
	for _, unknown := range []string{"nope", "", "a\x00b", "\xff"} {
		if _, err := s.GetMeter(ctx, unknown); !errors.Is(err, plans.ErrUnknownMeter) {
			t.Errorf("%q: %v", unknown, err)
		}
	}
	for _, c := range []struct {
		key  string
		in   plans.PutMeterInput
		want []string
	}{
		{"", plans.PutMeterInput{}, []string{"key", "unit"}},
		{"a/b", plans.PutMeterInput{Unit: "a\x00", Name: "\n"}, []string{"key", "unit", "name"}},
	} {
		if _, _, err := s.PutMeter(ctx, c.key, c.in); !slices.Equal(planstest.Fields(err), c.want) {
			t.Errorf("%q %+v: %v", c.key, c.in, err)
		}
	}
	if planstest.ChangeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
}

func TestPlanVersions(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	planstest.Declare(t, s, "api")
	for _, pre := range []plans.Precondition{planstest.Match("1"), planstest.AnyVersion, {Given: true, ETags: []string{"1", "2"}}, {Given: true}} {
		if _, _, err := s.PutPlan(ctx, "basic", planstest.Hourly(5), pre); !errors.Is(err, plans.ErrPrecondition) {
			t.Errorf("new, %+v: %v", pre, err)
		}
	}
	first, _, err := s.PutPlan(ctx, "basic", planstest.Hourly(5), plans.Precondition{None: true})
	if err != nil || first.Version != 1 || first.Key != "basic" || first.ETag() != "1" || time.Since(first.CreatedAt) > time.Minute {
		t.Fatalf("%+v %v", first, err)
	}
	for _, c := range []struct {
		pre  plans.Precondition
		want error
	}{
		{plans.Precondition{}, plans.ErrPreconditionRequired},
		{planstest.Match("2"), plans.ErrPrecondition},
		{planstest.Match(""), plans.ErrPrecondition},
		{plans.Precondition{Given: true}, plans.ErrPrecondition}, // weak tags only
		{plans.Precondition{None: true}, plans.ErrExists},
		{plans.Precondition{Given: true, ETags: []string{"1"}, None: true}, plans.ErrExists},
	} {
		if _, _, err := s.PutPlan(ctx, "basic", planstest.Hourly(6), c.pre); !errors.Is(err, c.want) {
			t.Errorf("existing, %+v: %v", c.pre, err)
		}
	}
	second, wrote2, err2 := s.PutPlan(ctx, "basic", planstest.Hourly(6), plans.Precondition{Given: true, ETags: []string{"7", "1"}})
	third, wrote3, err3 := s.PutPlan(ctx, "basic", planstest.Hourly(7), planstest.AnyVersion)
	if err := errors.Join(err2, err3); err != nil || second.Version != 2 || third.Version != 3 || !wrote2 || !wrote3 {
		t.Fatalf("versions %+v, %+v; %v", second, third, err)
	}
	if _, _, err := s.PutPlan(ctx, "basic", planstest.Hourly(8), planstest.Match("2")); !errors.Is(err, plans.ErrPrecondition) {
		t.Errorf("stale: %v", err)
	}
	// What is wrong with the plan comes before the precondition (RFC 9110, 13.2.1).
	if _, _, err := s.PutPlan(ctx, "basic", plans.PlanInput{}, planstest.Match("2")); !slices.Equal(planstest.Fields(err),
		[]string{"name", "currency", "interval"}) {
		t.Errorf("bad and stale: %v", err)
	}
	if got := planstest.Must[*plans.Plan](t)(s.GetPlan(ctx, "basic")); got.Version != 3 || got.Limits[0].Limit != 7 {
		t.Errorf("latest: %+v", got)
	}
	for n, limit := range map[int]int64{1: 5, 2: 6, 3: 7} {
		if got := planstest.Must[*plans.Plan](t)(s.GetPlanVersion(ctx, "basic", n)); got.Version != n || got.Limits[0].Limit != limit {
			t.Errorf("version %d: %+v", n, got)
		}
	}
	for _, n := range []int{0, -1, 4, 1 << 40} {
		if _, err := s.GetPlanVersion(ctx, "basic", n); !errors.Is(err, plans.ErrUnknownVersion) {
			t.Errorf("version %d: %v", n, err)
		}
	}
	for _, key := range []string{"nope", "", "a\x00"} {
		_, err := s.GetPlan(ctx, key)
		_, err1 := s.GetPlanVersion(ctx, key, 1)
		_, err2 := s.ListVersions(ctx, key, plans.Page{})
		for _, err := range []error{err, err1, err2} {
			if !errors.Is(err, plans.ErrUnknownPlan) {
				t.Errorf("%q: %v", key, err)
			}
		}
	}
}

// What changes nothing is no version and no change, in whatever words it is written.
func TestWritingAPlanAgain(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	planstest.Declare(t, s, "api")
	full := func() plans.PlanInput {
		in := planstest.Hourly(5)
		in.Features = map[string]any{"seats": json.Number("5"), "ratio": json.Number("1.50"), "sso": true}
		in.Prices = []plans.Price{{Meter: "api", Model: "per_unit", UnitPrice: planstest.Ptr("0.5")}}
		return in
	}
	first := planstest.PutPlan(t, s, "basic", full())
	number := planstest.ChangeNumber(t, s)
	spelled := full()
	spelled.ApplyTo, spelled.Meters, spelled.Limits[0].Align, spelled.Prices[0].Tiers = "all", []string{}, "clock", []plans.Tier{}
	for _, in := range []plans.PlanInput{full(), spelled, first.PlanInput} {
		again, wrote, err := s.PutPlan(ctx, "basic", in, planstest.Match("1"))
		if err != nil || wrote || !reflect.DeepEqual(again, first) {
			t.Errorf("wrote %v: %+v, %v", wrote, again, err)
		}
		if _, _, err := s.PutPlan(ctx, "basic", in, plans.Precondition{}); !errors.Is(err, plans.ErrPreconditionRequired) {
			t.Errorf("without If-Match: %v", err)
		}
		if _, _, err := s.PutPlan(ctx, "basic", in, planstest.Match("2")); !errors.Is(err, plans.ErrPrecondition) {
			t.Errorf("stale: %v", err)
		}
	}
	if got := planstest.ChangeNumber(t, s); got != number {
		t.Errorf("change %d, not %d", got, number)
	}
	for n, change := range []func(*plans.PlanInput){
		func(in *plans.PlanInput) { in.ApplyTo = "new" },
		func(in *plans.PlanInput) { in.ApplyTo = "all" },
		func(in *plans.PlanInput) { in.Features["seats"] = json.Number("6") },
	} {
		in := full()
		change(&in)
		if p, wrote, err := s.PutPlan(ctx, "basic", in, planstest.AnyVersion); err != nil || !wrote || p.Version != n+2 {
			t.Errorf("%d: wrote %v: %+v, %v", n, wrote, p, err)
		}
	}
}

func TestPlanOnAnUndeclaredMeter(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	in := planstest.Hourly(5)
	in.Meters = []string{"seats"}
	if _, _, err := s.PutPlan(t.Context(), "p", in, plans.Precondition{}); !slices.Equal(planstest.Fields(err), []string{"meters[0]", "limits[0].meter"}) {
		t.Errorf("got %v", err)
	}
	if n := planstest.ChangeNumber(t, s); n != 0 {
		t.Errorf("a refused plan left change %d", n)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	ctx := t.Context()
	for i, key := range []string{"b", "c", "d", "e"} {
		planstest.Declare(t, s, key)
		planstest.PutPlan(t, s, key, planstest.Hourly(1))
		planstest.PutPlan(t, s, "basic", planstest.Hourly(100+int64(i)))
		planstest.PutCustomer(t, s, key, planstest.OnPlan("basic"))
	}
	walk(t, "meters", []string{"api", "b", "c", "d", "e"}, func(p plans.Page) (*plans.List[plans.Meter], error) { return s.ListMeters(ctx, p) },
		func(m plans.Meter) string { return m.Key })
	walk(t, "plans", []string{"b", "basic", "c", "d", "e"}, func(p plans.Page) (*plans.List[*plans.Plan], error) { return s.ListPlans(ctx, p) },
		func(p *plans.Plan) string { return p.Key })
	walk(t, "versions", []string{"1", "2", "3", "4", "5"}, func(p plans.Page) (*plans.List[*plans.Plan], error) { return s.ListVersions(ctx, "basic", p) },
		func(p *plans.Plan) string { return p.ETag() })
	other := planstest.Must[*plans.List[*plans.Plan]](t)(s.ListVersions(ctx, "basic", plans.Page{Limit: 1}))
	if _, err := s.ListVersions(ctx, "b", plans.Page{Cursor: other.Next}); !slices.Equal(planstest.Fields(err), []string{"cursor"}) {
		t.Errorf("another plan's cursor: %v", err)
	}
	if list, err := s.ListCustomers(ctx, "b", plans.Page{}); err != nil || len(list.Items) != 1 || list.Items[0].Key != "b" {
		t.Errorf("keys that begin with b: %v, %v", list, err)
	}
	walk(t, "customers", []string{"acme", "b", "c", "d", "e"}, func(p plans.Page) (*plans.List[*plans.Customer], error) { return s.ListCustomers(ctx, "", p) },
		func(c *plans.Customer) string { return c.Key })
}

// walk reads a list in pages of every size and wants the same items each time.
func walk[T any](t *testing.T, what string, want []string, page func(plans.Page) (*plans.List[T], error), name func(T) string) {
	t.Helper()
	for size := range len(want) + 1 {
		var got []string
		for cursor := ""; ; {
			list, err := page(plans.Page{Limit: size + 1, Cursor: cursor})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for _, item := range list.Items {
				got = append(got, name(item))
			}
			if cursor = list.Next; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s in pages of %d: %q", what, size+1, got)
		}
	}
	if _, err := page(plans.Page{Cursor: "nonsense"}); !slices.Equal(planstest.Fields(err), []string{"cursor"}) {
		t.Errorf("%s: %v", what, err)
	}
}

// All versions of a plan have one interval and one currency; all else may change.
func TestAllVersionsHaveOneIntervalAndCurrency(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "basic", planstest.Hourly(5))
	for field, change := range map[string]func(*plans.PlanInput){
		"interval":       func(in *plans.PlanInput) { in.Interval = "week" },
		"interval count": func(in *plans.PlanInput) { in.IntervalCount = 2 },
		"currency":       func(in *plans.PlanInput) { in.Currency = "EUR" },
		"both":           func(in *plans.PlanInput) { in.Interval, in.Currency = "day", "JPY" },
	} {
		in := planstest.Hourly(6)
		change(&in)
		want := map[string][]string{"interval": {"interval"}, "interval count": {"interval"}, "currency": {"currency"}, "both": {"interval", "currency"}}[field]
		if _, wrote, err := s.PutPlan(t.Context(), "basic", in, planstest.AnyVersion); wrote || !slices.Equal(planstest.Fields(err), want) {
			t.Errorf("%s: wrote %v, %v", field, wrote, err)
		}
	}
	in := planstest.Hourly(6)
	in.BaseIn, in.MinimumMinor = plans.InAdvance, 500
	if p := planstest.PutPlan(t, s, "basic", in); p.Version != 2 || p.BaseIn != "advance" || p.MinimumMinor != 500 {
		t.Errorf("%+v", p)
	}
}
