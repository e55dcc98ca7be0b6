package catalog

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	for _, meter := range []string{"api", "seats", "priced", "counted", "other"} {
		planstest.Declare(t, s, meter)
	}
	in := planstest.Hourly(5)
	in.Interval, in.IntervalCount = "week", 2
	in.Meters = []string{"counted"}
	in.Limits = append(in.Limits,
		plans.Limit{Meter: "seats", Spec: model.Spec{Name: "seats", Algorithm: "fixed_window", Limit: 3, Window: "1d"}},
		plans.Limit{Meter: "api", Spec: model.Spec{Name: "rate", Algorithm: "token_bucket", Limit: 10, Window: "1s"}})
	in.Prices = []plans.Price{planstest.PerUnit("priced"), planstest.PerUnit("api")}
	plan := planstest.PutPlan(t, s, "plan", in)
	customer := plans.CustomerInput{Name: "A", Plan: "plan", Timezone: "Asia/Kathmandu", BillingAnchor: "2026-01-31T12:00:00"}
	acme, bolt := planstest.PutCustomer(t, s, "acme", customer), planstest.PutCustomer(t, s, "bolt", customer)

	target, err := c.Resolve(ctx, "acme", "api", 0)
	if err != nil {
		t.Fatal(err)
	}
	zone := planstest.Must[*time.Location](t)(calendar.Location("Asia/Kathmandu"))
	meter := planstest.Must[plans.Meter](t)(s.GetMeter(ctx, "api"))
	if len(target.Counters) != 1 || target.Counters[0].Key != (model.CounterKey{Customer: acme.ID, Meter: meter.ID}) ||
		target.NumLimits() != 2 || target.Limit(0).Name != "hourly" || target.Limit(1).Name != "rate" ||
		target.Zone != zone || target.Anchor.String() != "2026-01-31T12:00:00" ||
		target.Interval != (calendar.Interval{Unit: calendar.Weeks, Count: 2}) || target.Change != acme.Change {
		t.Errorf("got %+v", target)
	}
	if again := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", target.Change)); again != target {
		t.Error("another target for the same")
	}
	other := planstest.Must[*model.Target](t)(c.Resolve(ctx, "bolt", "api", 0))
	if other == target || other.Limit(0) != target.Limit(0) || other.Change != bolt.Change {
		t.Error("limits are not shared between customers")
	}
	for meter, limits := range map[string]int{"seats": 1, "priced": 0, "counted": 0} {
		if target, err := c.Resolve(ctx, "acme", meter, 0); err != nil || target.NumLimits() != limits {
			t.Errorf("%s: %+v, %v", meter, target, err)
		}
	}
	for _, unknown := range []struct {
		customer, meter string
		want            error
	}{
		{"acme", "other", plans.ErrNotInPlan},
		{"acme", "nope", plans.ErrUnknownMeter},
		{"acme", "a/b", plans.ErrUnknownMeter},
		{"acme", "", plans.ErrUnknownMeter},
		{"nope", "api", plans.ErrUnknownCustomer},
		{"..", "api", plans.ErrUnknownCustomer},
		{"a\x00", "api", plans.ErrUnknownCustomer},
	} {
		if _, err := c.Resolve(ctx, unknown.customer, unknown.meter, 0); !errors.Is(err, unknown.want) {
			t.Errorf("%+v: %v", unknown, err)
		}
	}
	checkMeters(t, c, plan, target)
}

// checkMeters compares what a catalog says of acme's meters.
func checkMeters(t *testing.T, c *Catalog, plan *plans.Plan, api *model.Target) {
	t.Helper()
	account, err := c.Meters(t.Context(), "acme")
	if err != nil || account.Plan.Version != plan.Version || account.Plan.Name != "Plan" || account.Clock != nil || account.Anonymous {
		t.Fatalf("%+v %v", account, err)
	}
	meters := account.Meters
	want := []struct {
		key   string
		price bool
	}{{"counted", false}, {"api", true}, {"seats", false}, {"priced", true}}
	for i, m := range meters {
		if m.Meter.Key != want[i].key || (m.Price != nil) != want[i].price || m.Meter.Unit != "request" {
			t.Errorf("meter %d: %+v", i, m)
		}
	}
	if len(meters) != len(want) || meters[1].Target != api {
		t.Errorf("got %d meters", len(meters))
	}
}

// What is written through the node's own store counts before the write returns.
func TestOwnWritesCountAtOnce(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	planstest.Populate(t, s)
	for limit := range int64(20) {
		planstest.PutPlan(t, s, "basic", planstest.Hourly(limit))
		if got := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)); planstest.LimitOf(got) != limit {
			t.Fatalf("limit %d after a write of %d", planstest.LimitOf(got), limit)
		}
	}
}

// Every kind of change on one node reaches another's answers, negative ones too.
func TestChangesReachAnotherNode(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	_, c := newNode(t, url)
	ctx := t.Context()
	answer := func(meter string) string {
		switch target, err := c.Resolve(ctx, "acme", meter, 0); {
		case err != nil:
			return err.Error()
		default:
			return fmt.Sprint(planstest.LimitOf(target))
		}
	}
	within := map[string]time.Duration{}
	becomes := func(what, meter, want string) {
		t.Helper()
		within[what] = soon(t, c, what, func() bool { return answer(meter) == want })
	}
	planstest.Declare(t, admin, "api")
	planstest.PutPlan(t, admin, "basic", planstest.Hourly(5))
	becomes("no customer", "api", plans.ErrUnknownCustomer.Error())
	planstest.PutCustomer(t, admin, "acme", planstest.OnPlan("basic"))
	becomes("a customer", "api", "5")
	becomes("no meter", "seats", plans.ErrUnknownMeter.Error())
	planstest.Declare(t, admin, "seats")
	becomes("a meter", "seats", plans.ErrNotInPlan.Error())
	in := planstest.Hourly(6)
	in.Meters = []string{"seats"}
	planstest.PutPlan(t, admin, "basic", in)
	becomes("a meter in the plan", "seats", "-1")
	becomes("a raised limit", "api", "6")
	planstest.PutPlan(t, admin, "other", planstest.Hourly(9))
	planstest.PutCustomer(t, admin, "acme", planstest.OnPlan("other"))
	becomes("another plan", "api", "9")
	if err := admin.ArchiveCustomer(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	becomes("an archived customer", "api", plans.ErrUnknownCustomer.Error())
	t.Log(within)
}

// A resolve that must be as new as a change asks for it itself.
func TestAtLeastCatchesUp(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	c := idleCatalog(t, url, testOptions()) // nothing runs
	ctx := t.Context()
	if got := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0)); planstest.LimitOf(got) != 5 {
		t.Fatalf("got %d", planstest.LimitOf(got))
	}
	planstest.PutPlan(t, admin, "basic", planstest.Hourly(6))
	if got := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0)); planstest.LimitOf(got) != 5 {
		t.Fatalf("got %d: the memory was not used", planstest.LimitOf(got))
	}
	if got := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", planstest.ChangeNumber(t, admin))); planstest.LimitOf(got) != 6 {
		t.Errorf("got %d", planstest.LimitOf(got))
	}
	if c.Applied() != planstest.ChangeNumber(t, admin) {
		t.Errorf("applied %d of %d", c.Applied(), planstest.ChangeNumber(t, admin))
	}
	if _, err := c.Resolve(ctx, "acme", "api", 1<<40); err == nil {
		t.Error("a change that is not there was reached")
	}
}

// What is unknown is asked for once, in a memory that has its bound.
func TestUnknownCustomersAreRemembered(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	options := testOptions()
	options.Customers = 50
	c := idleCatalog(t, url, options)
	ctx := t.Context()
	if err := c.CatchUp(ctx, 0); err != nil {
		t.Fatal(err)
	}
	acquired := c.pool.Stat().AcquireCount()
	for range 100 {
		if _, err := c.Resolve(ctx, "nobody", "api", 0); !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Fatal(err)
		}
	}
	if n := c.pool.Stat().AcquireCount() - acquired; n > 2 {
		t.Errorf("%d statements for one customer that is not there", n)
	}
	for i := range 200 {
		if _, err := c.Resolve(ctx, fmt.Sprint("nobody", i), "api", 0); !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Fatal(err)
		}
	}
	if n := c.memory.Load().unknown.Len(); n > 50 {
		t.Errorf("%d unknown customers are remembered", n)
	}
}

func TestResolveFromMemoryAllocatesNothing(t *testing.T) {
	s, c := newNode(t, pgtest.NewDatabase(t))
	planstest.Populate(t, s)
	ctx := t.Context()
	_, secret, err := s.CreateKey(ctx, "k", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := c.Resolve(ctx, "acme", "api", 3); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Resolve allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := c.Authenticate(ctx, secret, anyKey); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Authenticate allocates %v times", n)
	}
}
