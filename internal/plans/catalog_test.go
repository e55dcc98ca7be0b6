package plans

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/model"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	for _, meter := range []string{"api", "seats", "priced", "counted", "other"} {
		declare(t, s, meter)
	}
	in := hourly(5)
	in.Interval, in.IntervalCount = "week", 2
	in.Meters = []string{"counted"}
	in.Limits = append(in.Limits,
		Limit{"seats", model.Spec{Name: "seats", Algorithm: "fixed_window", Limit: 3, Window: "1d"}},
		Limit{"api", model.Spec{Name: "rate", Algorithm: "token_bucket", Limit: 10, Window: "1s"}})
	in.Prices = []Price{perUnit("priced"), perUnit("api")}
	plan := putPlan(t, s, "plan", in)
	customer := CustomerInput{Name: "A", Plan: "plan", Timezone: "Asia/Kathmandu", BillingAnchor: "2026-01-31T12:00:00"}
	acme, bolt := putCustomer(t, s, "acme", customer), putCustomer(t, s, "bolt", customer)

	target, err := c.Resolve(ctx, "acme", "api", 0)
	if err != nil {
		t.Fatal(err)
	}
	zone := must[*time.Location](t)(calendar.Location("Asia/Kathmandu"))
	meter := must[Meter](t)(s.GetMeter(ctx, "api"))
	if len(target.Counters) != 1 || target.Counters[0].Key != (model.CounterKey{Customer: acme.ID, Meter: meter.ID}) ||
		target.NumLimits() != 2 || target.Limit(0).Name != "hourly" || target.Limit(1).Name != "rate" ||
		target.Zone != zone || target.Anchor.String() != "2026-01-31T12:00:00" ||
		target.Interval != (calendar.Interval{Unit: calendar.Weeks, Count: 2}) || target.Change != acme.Change {
		t.Errorf("got %+v", target)
	}
	if again := must[*model.Target](t)(c.Resolve(ctx, "acme", "api", target.Change)); again != target {
		t.Error("another target for the same")
	}
	other := must[*model.Target](t)(c.Resolve(ctx, "bolt", "api", 0))
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
		{"acme", "other", ErrNotInPlan},
		{"acme", "nope", ErrUnknownMeter},
		{"acme", "a/b", ErrUnknownMeter},
		{"acme", "", ErrUnknownMeter},
		{"nope", "api", ErrUnknownCustomer},
		{"..", "api", ErrUnknownCustomer},
		{"a\x00", "api", ErrUnknownCustomer},
	} {
		if _, err := c.Resolve(ctx, unknown.customer, unknown.meter, 0); !errors.Is(err, unknown.want) {
			t.Errorf("%+v: %v", unknown, err)
		}
	}

	account, err := c.Meters(ctx, "acme")
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
	if len(meters) != len(want) || meters[1].Target != target {
		t.Errorf("got %d meters", len(meters))
	}
}

// What is written through the node's own store counts before the write returns.
func TestOwnWritesCountAtOnce(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	populate(t, s)
	for limit := range int64(20) {
		putPlan(t, s, "basic", hourly(limit))
		if got := must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)); limitOf(got) != limit {
			t.Fatalf("limit %d after a write of %d", limitOf(got), limit)
		}
	}
}

// Every kind of change on one node reaches another's answers, negative ones too.
func TestChangesReachAnotherNode(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := newStore(t, url)
	_, c := newNode(t, url)
	ctx := t.Context()
	answer := func(meter string) string {
		switch target, err := c.Resolve(ctx, "acme", meter, 0); {
		case err != nil:
			return err.Error()
		default:
			return fmt.Sprint(limitOf(target))
		}
	}
	within := map[string]time.Duration{}
	becomes := func(what, meter, want string) {
		t.Helper()
		began := time.Now()
		eventually(t, what, func() bool { return answer(meter) == want })
		if within[what] = time.Since(began); within[what] > Freshness {
			t.Errorf("%s took %s", what, within[what])
		}
	}
	declare(t, admin, "api")
	putPlan(t, admin, "basic", hourly(5))
	becomes("no customer", "api", ErrUnknownCustomer.Error())
	putCustomer(t, admin, "acme", onPlan("basic"))
	becomes("a customer", "api", "5")
	becomes("no meter", "seats", ErrUnknownMeter.Error())
	declare(t, admin, "seats")
	becomes("a meter", "seats", ErrNotInPlan.Error())
	in := hourly(6)
	in.Meters = []string{"seats"}
	putPlan(t, admin, "basic", in)
	becomes("a meter in the plan", "seats", "-1")
	becomes("a raised limit", "api", "6")
	putPlan(t, admin, "other", hourly(9))
	putCustomer(t, admin, "acme", onPlan("other"))
	becomes("another plan", "api", "9")
	if err := admin.ArchiveCustomer(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	becomes("an archived customer", "api", ErrUnknownCustomer.Error())
	t.Log(within)
}

// A resolve that must be as new as a change asks for it itself.
func TestAtLeastCatchesUp(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := newStore(t, url)
	populate(t, admin)
	c := idleCatalog(t, url, testOptions()) // nothing runs
	ctx := t.Context()
	if got := must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0)); limitOf(got) != 5 {
		t.Fatalf("got %d", limitOf(got))
	}
	putPlan(t, admin, "basic", hourly(6))
	if got := must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0)); limitOf(got) != 5 {
		t.Fatalf("got %d: the memory was not used", limitOf(got))
	}
	if got := must[*model.Target](t)(c.Resolve(ctx, "acme", "api", changeNumber(t, admin))); limitOf(got) != 6 {
		t.Errorf("got %d", limitOf(got))
	}
	if c.Applied() != changeNumber(t, admin) {
		t.Errorf("applied %d of %d", c.Applied(), changeNumber(t, admin))
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
	acquired := c.store.Pool().Stat().AcquireCount()
	for range 100 {
		if _, err := c.Resolve(ctx, "nobody", "api", 0); !errors.Is(err, ErrUnknownCustomer) {
			t.Fatal(err)
		}
	}
	if n := c.store.Pool().Stat().AcquireCount() - acquired; n > 2 {
		t.Errorf("%d statements for one customer that is not there", n)
	}
	for i := range 200 {
		if _, err := c.Resolve(ctx, fmt.Sprint("nobody", i), "api", 0); !errors.Is(err, ErrUnknownCustomer) {
			t.Fatal(err)
		}
	}
	if n := c.memory.Load().unknown.Len(); n > 50 {
		t.Errorf("%d unknown customers are remembered", n)
	}
}

func TestResolveFromMemoryAllocatesNothing(t *testing.T) {
	s, c := newNode(t, pgtest.NewDatabase(t))
	populate(t, s)
	ctx := t.Context()
	_, secret, err := s.CreateKey(ctx, "k", ScopeBackend, nil)
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
		if _, err := c.Authenticate(ctx, secret); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Authenticate allocates %v times", n)
	}
}
