package plans

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

	"quotad/internal/postgres/pgtest"
)

func TestCustomers(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	ctx := t.Context()
	in := CustomerInput{
		Name: "Ä & Co", Plan: "basic", Timezone: "Europe/Berlin", BillingAnchor: "2026-01-31T00:00:00",
		Metadata: map[string]string{"crm": "4711", "note": ""},
	}
	for _, pre := range []Precondition{match("1"), anyVersion} {
		if _, _, err := s.PutCustomer(ctx, "auth0|x", in, pre); !errors.Is(err, ErrPrecondition) {
			t.Errorf("new, %+v: %v", pre, err)
		}
	}
	c, created, err := s.PutCustomer(ctx, "auth0|x", in, Precondition{})
	if err != nil || !created || c.Key != "auth0|x" || c.ID == 0 || c.EffectiveVersion != 1 || c.ArchivedAt != nil ||
		c.Name != in.Name || c.Plan != "basic" || c.PlanVersion != nil || c.Timezone != in.Timezone ||
		c.BillingAnchor != in.BillingAnchor || !maps.Equal(c.Metadata, in.Metadata) || time.Since(c.CreatedAt) > time.Minute {
		t.Fatalf("%+v %v %v", c, created, err)
	}
	if _, _, err := s.PutCustomer(ctx, "auth0|x", in, Precondition{}); !errors.Is(err, ErrPreconditionRequired) {
		t.Errorf("existing without If-Match: %v", err)
	}
	in.Name, in.Metadata, in.BillingAnchor = "New", nil, ""
	d, created, err := s.PutCustomer(ctx, "auth0|x", in, match(c.ETag()))
	if err != nil || created || d.ID != c.ID || d.Name != "New" || len(d.Metadata) != 0 || d.BillingAnchor != c.BillingAnchor ||
		!d.CreatedAt.Equal(c.CreatedAt) || d.ETag() == c.ETag() {
		t.Errorf("%+v %v %v", d, created, err)
	}
	if _, _, err := s.PutCustomer(ctx, "auth0|x", in, match(c.ETag())); !errors.Is(err, ErrPrecondition) {
		t.Errorf("stale: %v", err)
	}
	for _, key := range []string{"nope", "", "a/b", "a\x00"} {
		_, err := s.GetCustomer(ctx, key)
		if err2 := s.ArchiveCustomer(ctx, key); !errors.Is(err, ErrUnknownCustomer) || !errors.Is(err2, ErrUnknownCustomer) {
			t.Errorf("%q: %v, %v", key, err, err2)
		}
	}
}

func TestCustomerFaults(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint(i)] = ""
	}
	before := changeNumber(t, s)
	for name, c := range map[string]struct {
		spoil func(in *CustomerInput)
		want  []string
	}{
		"name":            {func(in *CustomerInput) { in.Name = "" }, []string{"name"}},
		"name control":    {func(in *CustomerInput) { in.Name = "a\tb" }, []string{"name"}},
		"plan missing":    {func(in *CustomerInput) { in.Plan = "" }, []string{"plan"}},
		"plan malformed":  {func(in *CustomerInput) { in.Plan = "a\x00" }, []string{"plan"}},
		"plan unknown":    {func(in *CustomerInput) { in.Plan = "nope" }, []string{"plan"}},
		"version unknown": {func(in *CustomerInput) { in.PlanVersion = ptr(2) }, []string{"plan_version"}},
		"version zero":    {func(in *CustomerInput) { in.PlanVersion = ptr(0) }, []string{"plan_version"}},
		"version huge":    {func(in *CustomerInput) { in.PlanVersion = ptr(1 << 40) }, []string{"plan_version"}},
		"zone missing":    {func(in *CustomerInput) { in.Timezone = "" }, []string{"timezone"}},
		"zone unknown":    {func(in *CustomerInput) { in.Timezone = "Mars/Olympus" }, []string{"timezone"}},
		"zone local":      {func(in *CustomerInput) { in.Timezone = "Local" }, []string{"timezone"}},
		"zone path":       {func(in *CustomerInput) { in.Timezone = "../etc/passwd" }, []string{"timezone"}},
		"anchor zone":     {func(in *CustomerInput) { in.BillingAnchor = "2026-01-31T00:00:00Z" }, []string{"billing_anchor"}},
		"anchor day":      {func(in *CustomerInput) { in.BillingAnchor = "2026-02-30T00:00:00" }, []string{"billing_anchor"}},
		"anchor year":     {func(in *CustomerInput) { in.BillingAnchor = "1900-01-01T00:00:00" }, []string{"billing_anchor"}},
		"metadata many":   {func(in *CustomerInput) { in.Metadata = many }, []string{"metadata"}},
		"metadata key":    {func(in *CustomerInput) { in.Metadata = map[string]string{"": "", strings.Repeat("x", 101): ""} }, []string{"metadata", "metadata"}},
		"metadata value":  {func(in *CustomerInput) { in.Metadata = map[string]string{"a": strings.Repeat("x", 501), "b": "\x00"} }, []string{"metadata.a", "metadata.b"}},
		"several": {
			func(in *CustomerInput) { *in = CustomerInput{Plan: "nope", Timezone: "x"} },
			[]string{"name", "timezone", "plan"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := onPlan("basic")
			c.spoil(&in)
			if _, _, err := s.PutCustomer(t.Context(), "new", in, Precondition{}); !slices.Equal(fields(err), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, key := range []string{"", "..", "a/b", "ä", strings.Repeat("x", 201)} {
		if _, _, err := s.PutCustomer(t.Context(), key, onPlan("basic"), Precondition{}); !slices.Equal(fields(err), []string{"key"}) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if changeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
}

func TestDefaultAnchorIsTheCreationsWallClock(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	for zone, offset := range map[string]time.Duration{"UTC": 0, "Asia/Kathmandu": 5*time.Hour + 45*time.Minute, "Etc/GMT+12": -12 * time.Hour} {
		in := onPlan("basic")
		in.Timezone = zone
		c := putCustomer(t, s, "in:"+strings.ReplaceAll(zone, "/", "_"), in)
		want := c.CreatedAt.Add(offset).Format("2006-01-02T15:04:05")
		if c.BillingAnchor != want {
			t.Errorf("%s: got %s, want %s", zone, c.BillingAnchor, want)
		}
		in.Timezone = "America/New_York"
		if again := putCustomer(t, s, c.Key, in); again.BillingAnchor != want {
			t.Errorf("%s: moved to %s by a new timezone", zone, again.BillingAnchor)
		}
	}
}

func TestArchivedCustomers(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	ctx := t.Context()
	before := must[*Customer](t)(s.GetCustomer(ctx, "acme"))
	for range 2 {
		if err := s.ArchiveCustomer(ctx, "acme"); err != nil {
			t.Fatal(err)
		}
	}
	after := must[*Customer](t)(s.GetCustomer(ctx, "acme"))
	if after.ArchivedAt == nil || after.Change != before.Change+1 || changeNumber(t, s) != after.Change {
		t.Errorf("archived twice: %+v, change %d", after, changeNumber(t, s))
	}
	for _, pre := range []Precondition{{}, anyVersion, match(after.ETag())} {
		if _, _, err := s.PutCustomer(ctx, "acme", onPlan("basic"), pre); !errors.Is(err, ErrArchived) {
			t.Errorf("%+v: %v", pre, err)
		}
	}
	if list := must[*List[*Customer]](t)(s.ListCustomers(ctx, Page{})); len(list.Items) != 1 || list.Items[0].ArchivedAt == nil {
		t.Errorf("list: %+v", list)
	}
}

// What changes nothing is no change: its ETag stays, and no node reads the customer again.
func TestWritingACustomerAgain(t *testing.T) {
	t.Parallel()
	s := newStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	declare(t, s, "api")
	putPlan(t, s, "basic", hourly(5))
	putPlan(t, s, "other", hourly(5))
	if _, _, err := s.PutTestClock(ctx, "c", 1_700_000_000_000_000); err != nil {
		t.Fatal(err)
	}
	full := func() CustomerInput {
		return CustomerInput{
			Name: "A", Plan: "basic", PlanVersion: ptr(1), Timezone: "Europe/Berlin", Metadata: map[string]string{"a": "b"},
			Features: map[string]any{"seats": json.Number("5"), "ratio": json.Number("1.50")}, TestClock: ptr("c"),
		}
	}
	for key, in := range map[string]CustomerInput{"full": full(), "plain": onPlan("basic")} {
		first := putCustomer(t, s, key, in)
		number := changeNumber(t, s)
		spelled := in
		spelled.BillingAnchor, spelled.TestClock, spelled.EndPeriod = first.BillingAnchor, nil, true
		for _, in := range []CustomerInput{in, spelled} {
			again, created, err := s.PutCustomer(ctx, key, in, match(first.ETag()))
			if err != nil || created || !reflect.DeepEqual(again, first) {
				t.Errorf("%s: created %v: %+v, %v", key, created, again, err)
			}
			if _, _, err := s.PutCustomer(ctx, key, in, Precondition{}); !errors.Is(err, ErrPreconditionRequired) {
				t.Errorf("%s: without If-Match: %v", key, err)
			}
		}
		if got := changeNumber(t, s); got != number {
			t.Errorf("%s: change %d, not %d", key, got, number)
		}
	}
	for what, change := range map[string]func(*CustomerInput){
		"name":     func(in *CustomerInput) { in.Name = "B" },
		"plan":     func(in *CustomerInput) { in.Plan = "other" },
		"pin":      func(in *CustomerInput) { in.PlanVersion = nil },
		"timezone": func(in *CustomerInput) { in.Timezone = "UTC" },
		"anchor":   func(in *CustomerInput) { in.BillingAnchor = "2026-01-31T00:00:00" },
		"metadata": func(in *CustomerInput) { in.Metadata = nil },
		"features": func(in *CustomerInput) { in.Features["seats"] = json.Number("6") },
	} {
		before := putCustomer(t, s, "full", full())
		in := full()
		change(&in)
		if c := putCustomer(t, s, "full", in); c.Change <= before.Change {
			t.Errorf("another %s is no change", what)
		}
	}
}
