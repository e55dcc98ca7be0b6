package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestCustomers(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	ctx := t.Context()
	in := plans.CustomerInput{
		Name: "Ä & Co", Plan: "basic", Timezone: "Europe/Berlin", BillingAnchor: "2026-01-31T00:00:00",
		Metadata: map[string]string{"crm": "4711", "note": ""},
	}
	for _, pre := range []plans.Precondition{planstest.Match("1"), planstest.AnyVersion} {
		if _, _, err := s.PutCustomer(ctx, "auth0|x", in, pre); !errors.Is(err, plans.ErrPrecondition) {
			t.Errorf("new, %+v: %v", pre, err)
		}
	}
	c, created, err := s.PutCustomer(ctx, "auth0|x", in, plans.Precondition{})
	if err != nil || !created || c.Key != "auth0|x" || c.ID == 0 || c.EffectiveVersion != 1 || c.ArchivedAt != nil ||
		c.Name != in.Name || c.Plan != "basic" || c.PlanVersion != nil || c.Timezone != in.Timezone ||
		c.BillingAnchor != in.BillingAnchor || !maps.Equal(c.Metadata, in.Metadata) || time.Since(c.CreatedAt) > time.Minute {
		t.Fatalf("%+v %v %v", c, created, err)
	}
	if _, _, err := s.PutCustomer(ctx, "auth0|x", in, plans.Precondition{}); !errors.Is(err, plans.ErrPreconditionRequired) {
		t.Errorf("existing without If-Match: %v", err)
	}
	in.Name, in.Metadata, in.BillingAnchor = "New", nil, ""
	d, created, err := s.PutCustomer(ctx, "auth0|x", in, planstest.Match(c.ETag()))
	if err != nil || created || d.ID != c.ID || d.Name != "New" || len(d.Metadata) != 0 || d.BillingAnchor != c.BillingAnchor ||
		!d.CreatedAt.Equal(c.CreatedAt) || d.ETag() == c.ETag() {
		t.Errorf("%+v %v %v", d, created, err)
	}
	if _, _, err := s.PutCustomer(ctx, "auth0|x", in, planstest.Match(c.ETag())); !errors.Is(err, plans.ErrPrecondition) {
		t.Errorf("stale: %v", err)
	}
	for _, key := range []string{"nope", "", "a/b", "a\x00"} {
		_, err := s.GetCustomer(ctx, key)
		if err2 := s.ArchiveCustomer(ctx, key); !errors.Is(err, plans.ErrUnknownCustomer) || !errors.Is(err2, plans.ErrUnknownCustomer) {
			t.Errorf("%q: %v, %v", key, err, err2)
		}
	}
}

func TestCustomerFaults(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint(i)] = ""
	}
	before := planstest.ChangeNumber(t, s)
	for name, c := range map[string]struct {
		spoil func(in *plans.CustomerInput)
		want  []string
	}{
		"name":            {func(in *plans.CustomerInput) { in.Name = "" }, []string{"name"}},
		"name control":    {func(in *plans.CustomerInput) { in.Name = "a\tb" }, []string{"name"}},
		"plan missing":    {func(in *plans.CustomerInput) { in.Plan = "" }, []string{"plan"}},
		"plan malformed":  {func(in *plans.CustomerInput) { in.Plan = "a\x00" }, []string{"plan"}},
		"plan unknown":    {func(in *plans.CustomerInput) { in.Plan = "nope" }, []string{"plan"}},
		"version unknown": {func(in *plans.CustomerInput) { in.PlanVersion = planstest.Ptr(2) }, []string{"plan_version"}},
		"version zero":    {func(in *plans.CustomerInput) { in.PlanVersion = planstest.Ptr(0) }, []string{"plan_version"}},
		"version huge":    {func(in *plans.CustomerInput) { in.PlanVersion = planstest.Ptr(1 << 40) }, []string{"plan_version"}},
		"zone missing":    {func(in *plans.CustomerInput) { in.Timezone = "" }, []string{"timezone"}},
		"zone unknown":    {func(in *plans.CustomerInput) { in.Timezone = "Mars/Olympus" }, []string{"timezone"}},
		"zone local":      {func(in *plans.CustomerInput) { in.Timezone = "Local" }, []string{"timezone"}},
		"zone path":       {func(in *plans.CustomerInput) { in.Timezone = "../etc/passwd" }, []string{"timezone"}},
		"anchor zone":     {func(in *plans.CustomerInput) { in.BillingAnchor = "2026-01-31T00:00:00Z" }, []string{"billing_anchor"}},
		"anchor day":      {func(in *plans.CustomerInput) { in.BillingAnchor = "2026-02-30T00:00:00" }, []string{"billing_anchor"}},
		"anchor year":     {func(in *plans.CustomerInput) { in.BillingAnchor = "1900-01-01T00:00:00" }, []string{"billing_anchor"}},
		"metadata many":   {func(in *plans.CustomerInput) { in.Metadata = many }, []string{"metadata"}},
		"metadata key": {
			func(in *plans.CustomerInput) { in.Metadata = map[string]string{"": "", strings.Repeat("x", 101): ""} },
			[]string{"metadata", "metadata"},
		},
		"metadata value": {func(in *plans.CustomerInput) {
			in.Metadata = map[string]string{"a": strings.Repeat("x", 501), "b": "\x00"}
		}, []string{"metadata.a", "metadata.b"}},
		"several": {
			func(in *plans.CustomerInput) { *in = plans.CustomerInput{Plan: "nope", Timezone: "x"} },
			[]string{"name", "timezone", "plan"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := planstest.OnPlan("basic")
			c.spoil(&in)
			if _, _, err := s.PutCustomer(t.Context(), "new", in, plans.Precondition{}); !slices.Equal(planstest.Fields(err), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, key := range []string{"", "..", "a/b", "ä", strings.Repeat("x", 201)} {
		if _, _, err := s.PutCustomer(t.Context(), key, planstest.OnPlan("basic"), plans.Precondition{}); !slices.Equal(planstest.Fields(err), []string{"key"}) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if planstest.ChangeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
}

func TestDefaultAnchorIsTheCreationsWallClock(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	for zone, offset := range map[string]time.Duration{"UTC": 0, "Asia/Kathmandu": 5*time.Hour + 45*time.Minute, "Etc/GMT+12": -12 * time.Hour} {
		in := planstest.OnPlan("basic")
		in.Timezone = zone
		c := planstest.PutCustomer(t, s, "in:"+strings.ReplaceAll(zone, "/", "_"), in)
		want := c.CreatedAt.Add(offset).Format("2006-01-02T15:04:05")
		if c.BillingAnchor != want {
			t.Errorf("%s: got %s, want %s", zone, c.BillingAnchor, want)
		}
		in.Timezone = "America/New_York"
		if again := planstest.PutCustomer(t, s, c.Key, in); again.BillingAnchor != want {
			t.Errorf("%s: moved to %s by a new timezone", zone, again.BillingAnchor)
		}
	}
}

func TestArchivedCustomers(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	ctx := t.Context()
	before := planstest.Must[*plans.Customer](t)(s.GetCustomer(ctx, "acme"))
	for range 2 {
		if err := s.ArchiveCustomer(ctx, "acme"); err != nil {
			t.Fatal(err)
		}
	}
	after := planstest.Must[*plans.Customer](t)(s.GetCustomer(ctx, "acme"))
	if after.ArchivedAt == nil || after.Change != before.Change+1 || planstest.ChangeNumber(t, s) != after.Change {
		t.Errorf("archived twice: %+v, change %d", after, planstest.ChangeNumber(t, s))
	}
	for _, pre := range []plans.Precondition{{}, planstest.AnyVersion, planstest.Match(after.ETag())} {
		if _, _, err := s.PutCustomer(ctx, "acme", planstest.OnPlan("basic"), pre); !errors.Is(err, plans.ErrArchived) {
			t.Errorf("%+v: %v", pre, err)
		}
	}
	if list := planstest.Must[*plans.List[*plans.Customer]](t)(s.ListCustomers(ctx, "", plans.Page{})); len(list.Items) != 1 || list.Items[0].ArchivedAt == nil {
		t.Errorf("list: %+v", list)
	}
}

// What changes nothing is no change: its ETag stays, and no node reads the customer again.
func TestWritingACustomerAgain(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "basic", planstest.Hourly(5))
	planstest.PutPlan(t, s, "other", planstest.Hourly(5))
	if _, _, err := s.PutTestClock(ctx, "c", 1_700_000_000_000_000); err != nil {
		t.Fatal(err)
	}
	full := func() plans.CustomerInput {
		return plans.CustomerInput{
			Name: "A", Plan: "basic", PlanVersion: planstest.Ptr(1), Timezone: "Europe/Berlin", Metadata: map[string]string{"a": "b"},
			Features: map[string]any{"seats": json.Number("5"), "ratio": json.Number("1.50")}, TestClock: planstest.Ptr("c"),
		}
	}
	for key, in := range map[string]plans.CustomerInput{"full": full(), "plain": planstest.OnPlan("basic")} {
		first := planstest.PutCustomer(t, s, key, in)
		number := planstest.ChangeNumber(t, s)
		spelled := in
		spelled.BillingAnchor, spelled.TestClock, spelled.Change = first.BillingAnchor, nil, plans.ChangeNow
		for _, in := range []plans.CustomerInput{in, spelled} {
			again, created, err := s.PutCustomer(ctx, key, in, planstest.Match(first.ETag()))
			if err != nil || created || !reflect.DeepEqual(again, first) {
				t.Errorf("%s: created %v: %+v, %v", key, created, again, err)
			}
			if _, _, err := s.PutCustomer(ctx, key, in, plans.Precondition{}); !errors.Is(err, plans.ErrPreconditionRequired) {
				t.Errorf("%s: without If-Match: %v", key, err)
			}
		}
		if got := planstest.ChangeNumber(t, s); got != number {
			t.Errorf("%s: change %d, not %d", key, got, number)
		}
	}
	for what, change := range map[string]func(*plans.CustomerInput){
		"name":     func(in *plans.CustomerInput) { in.Name = "B" },
		"plan":     func(in *plans.CustomerInput) { in.Plan = "other" },
		"pin":      func(in *plans.CustomerInput) { in.PlanVersion = nil },
		"timezone": func(in *plans.CustomerInput) { in.Timezone = "UTC" },
		"anchor":   func(in *plans.CustomerInput) { in.BillingAnchor = "2026-01-31T00:00:00" },
		"metadata": func(in *plans.CustomerInput) { in.Metadata = nil },
		"features": func(in *plans.CustomerInput) { in.Features["seats"] = json.Number("6") },
	} {
		before := planstest.PutCustomer(t, s, "full", full())
		in := full()
		change(&in)
		if c := planstest.PutCustomer(t, s, "full", in); c.Change <= before.Change {
			t.Errorf("another %s is no change", what)
		}
	}
}
