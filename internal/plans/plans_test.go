package plans

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
)

func TestMeters(t *testing.T) {
	t.Parallel()
	s := newStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	m, created, err := s.PutMeter(ctx, "api", PutMeterInput{Unit: "request", Name: "API"})
	if err != nil || !created || m.Key != "api" || m.Unit != "request" || m.Name != "API" || m.ID == 0 {
		t.Fatalf("%+v %v %v", m, created, err)
	}
	again, created, err := s.PutMeter(ctx, "api", PutMeterInput{Unit: "call"})
	if err != nil || created || again != (Meter{Key: "api", Unit: "call", ID: m.ID}) {
		t.Errorf("%+v %v %v", again, created, err)
	}
	before := changeNumber(t, s)
	if same, _, err := s.PutMeter(ctx, "api", PutMeterInput{Unit: "call"}); err != nil || same != again || changeNumber(t, s) != before {
		t.Errorf("writing the same again: %+v %v, change %d after %d", same, err, changeNumber(t, s), before)
	}
	if got, err := s.GetMeter(ctx, "api"); err != nil || got != again {
		t.Errorf("%+v %v", got, err)
	}
	for _, unknown := range []string{"nope", "", "a\x00b", "\xff"} {
		if _, err := s.GetMeter(ctx, unknown); !errors.Is(err, ErrUnknownMeter) {
			t.Errorf("%q: %v", unknown, err)
		}
	}
	for _, c := range []struct {
		key  string
		in   PutMeterInput
		want []string
	}{
		{"", PutMeterInput{}, []string{"key", "unit"}},
		{"a/b", PutMeterInput{Unit: "a\x00", Name: "\n"}, []string{"key", "unit", "name"}},
	} {
		if _, _, err := s.PutMeter(ctx, c.key, c.in); !slices.Equal(fields(err), c.want) {
			t.Errorf("%q %+v: %v", c.key, c.in, err)
		}
	}
	if changeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
}

func TestPlanVersions(t *testing.T) {
	t.Parallel()
	s := newStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	declare(t, s, "api")
	for _, pre := range []Precondition{match("1"), anyVersion, {Given: true, ETags: []string{"1", "2"}}, {Given: true}} {
		if _, _, err := s.PutPlan(ctx, "basic", hourly(5), pre); !errors.Is(err, ErrPrecondition) {
			t.Errorf("new, %+v: %v", pre, err)
		}
	}
	first, _, err := s.PutPlan(ctx, "basic", hourly(5), Precondition{None: true})
	if err != nil || first.Version != 1 || first.Key != "basic" || first.ETag() != "1" || time.Since(first.CreatedAt) > time.Minute {
		t.Fatalf("%+v %v", first, err)
	}
	for _, c := range []struct {
		pre  Precondition
		want error
	}{
		{Precondition{}, ErrPreconditionRequired},
		{match("2"), ErrPrecondition},
		{match(""), ErrPrecondition},
		{Precondition{Given: true}, ErrPrecondition}, // weak tags only
		{Precondition{None: true}, ErrExists},
		{Precondition{Given: true, ETags: []string{"1"}, None: true}, ErrExists},
	} {
		if _, _, err := s.PutPlan(ctx, "basic", hourly(6), c.pre); !errors.Is(err, c.want) {
			t.Errorf("existing, %+v: %v", c.pre, err)
		}
	}
	second, wrote2, err2 := s.PutPlan(ctx, "basic", hourly(6), Precondition{Given: true, ETags: []string{"7", "1"}})
	third, wrote3, err3 := s.PutPlan(ctx, "basic", hourly(7), anyVersion)
	if err := errors.Join(err2, err3); err != nil || second.Version != 2 || third.Version != 3 || !wrote2 || !wrote3 {
		t.Fatalf("versions %+v, %+v; %v", second, third, err)
	}
	if _, _, err := s.PutPlan(ctx, "basic", hourly(8), match("2")); !errors.Is(err, ErrPrecondition) {
		t.Errorf("stale: %v", err)
	}
	// What is wrong with the plan comes before the precondition (RFC 9110, 13.2.1).
	if _, _, err := s.PutPlan(ctx, "basic", PlanInput{}, match("2")); !slices.Equal(fields(err), []string{"name", "currency", "interval"}) {
		t.Errorf("bad and stale: %v", err)
	}
	if got := must[*Plan](t)(s.GetPlan(ctx, "basic")); got.Version != 3 || got.Limits[0].Limit != 7 {
		t.Errorf("latest: %+v", got)
	}
	for n, limit := range map[int]int64{1: 5, 2: 6, 3: 7} {
		if got := must[*Plan](t)(s.GetPlanVersion(ctx, "basic", n)); got.Version != n || got.Limits[0].Limit != limit {
			t.Errorf("version %d: %+v", n, got)
		}
	}
	for _, n := range []int{0, -1, 4, 1 << 40} {
		if _, err := s.GetPlanVersion(ctx, "basic", n); !errors.Is(err, ErrUnknownVersion) {
			t.Errorf("version %d: %v", n, err)
		}
	}
	for _, key := range []string{"nope", "", "a\x00"} {
		_, err := s.GetPlan(ctx, key)
		_, err1 := s.GetPlanVersion(ctx, key, 1)
		_, err2 := s.ListVersions(ctx, key, Page{})
		for _, err := range []error{err, err1, err2} {
			if !errors.Is(err, ErrUnknownPlan) {
				t.Errorf("%q: %v", key, err)
			}
		}
	}
}

// What changes nothing is no version and no change, in whatever words it is written.
func TestWritingAPlanAgain(t *testing.T) {
	t.Parallel()
	s := newStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	declare(t, s, "api")
	full := func() PlanInput {
		in := hourly(5)
		in.Features = map[string]any{"seats": json.Number("5"), "ratio": json.Number("1.50"), "sso": true}
		in.Prices = []Price{{Meter: "api", Model: "per_unit", UnitPrice: ptr("0.5")}}
		return in
	}
	first := putPlan(t, s, "basic", full())
	number := changeNumber(t, s)
	spelled := full()
	spelled.ApplyTo, spelled.Meters, spelled.Limits[0].Align, spelled.Prices[0].Tiers = "all", []string{}, "clock", []Tier{}
	for _, in := range []PlanInput{full(), spelled, first.PlanInput} {
		again, wrote, err := s.PutPlan(ctx, "basic", in, match("1"))
		if err != nil || wrote || !reflect.DeepEqual(again, first) {
			t.Errorf("wrote %v: %+v, %v", wrote, again, err)
		}
		if _, _, err := s.PutPlan(ctx, "basic", in, Precondition{}); !errors.Is(err, ErrPreconditionRequired) {
			t.Errorf("without If-Match: %v", err)
		}
		if _, _, err := s.PutPlan(ctx, "basic", in, match("2")); !errors.Is(err, ErrPrecondition) {
			t.Errorf("stale: %v", err)
		}
	}
	if got := changeNumber(t, s); got != number {
		t.Errorf("change %d, not %d", got, number)
	}
	for n, change := range []func(*PlanInput){
		func(in *PlanInput) { in.ApplyTo = "new" },
		func(in *PlanInput) { in.ApplyTo = "all" },
		func(in *PlanInput) { in.Features["seats"] = json.Number("6") },
	} {
		in := full()
		change(&in)
		if p, wrote, err := s.PutPlan(ctx, "basic", in, anyVersion); err != nil || !wrote || p.Version != n+2 {
			t.Errorf("%d: wrote %v: %+v, %v", n, wrote, p, err)
		}
	}
}

func TestPlanOnAnUndeclaredMeter(t *testing.T) {
	t.Parallel()
	s := newStore(t, pgtest.NewDatabase(t))
	in := hourly(5)
	in.Meters = []string{"seats"}
	if _, _, err := s.PutPlan(t.Context(), "p", in, Precondition{}); !slices.Equal(fields(err), []string{"meters[0]", "limits[0].meter"}) {
		t.Errorf("got %v", err)
	}
	if n := changeNumber(t, s); n != 0 {
		t.Errorf("a refused plan left change %d", n)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	ctx := t.Context()
	for i, key := range []string{"b", "c", "d", "e"} {
		declare(t, s, key)
		putPlan(t, s, key, hourly(1))
		putPlan(t, s, "basic", hourly(100+int64(i)))
		putCustomer(t, s, key, onPlan("basic"))
	}
	walk(t, "meters", []string{"api", "b", "c", "d", "e"}, func(p Page) (*List[Meter], error) { return s.ListMeters(ctx, p) },
		func(m Meter) string { return m.Key })
	walk(t, "plans", []string{"b", "basic", "c", "d", "e"}, func(p Page) (*List[*Plan], error) { return s.ListPlans(ctx, p) },
		func(p *Plan) string { return p.Key })
	walk(t, "versions", []string{"1", "2", "3", "4", "5"}, func(p Page) (*List[*Plan], error) { return s.ListVersions(ctx, "basic", p) },
		func(p *Plan) string { return p.ETag() })
	other := must[*List[*Plan]](t)(s.ListVersions(ctx, "basic", Page{Limit: 1}))
	if _, err := s.ListVersions(ctx, "b", Page{Cursor: other.Next}); !slices.Equal(fields(err), []string{"cursor"}) {
		t.Errorf("another plan's cursor: %v", err)
	}
	walk(t, "customers", []string{"acme", "b", "c", "d", "e"}, func(p Page) (*List[*Customer], error) { return s.ListCustomers(ctx, p) },
		func(c *Customer) string { return c.Key })
}

// walk reads a list in pages of every size and wants the same items each time.
func walk[T any](t *testing.T, what string, want []string, page func(Page) (*List[T], error), name func(T) string) {
	t.Helper()
	for size := range len(want) + 1 {
		var got []string
		for cursor := ""; ; {
			list, err := page(Page{Limit: size + 1, Cursor: cursor})
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
	if _, err := page(Page{Cursor: "nonsense"}); !slices.Equal(fields(err), []string{"cursor"}) {
		t.Errorf("%s: %v", what, err)
	}
}
