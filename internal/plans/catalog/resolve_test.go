package catalog

import (
	"errors"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func customerID(t testing.TB, s *store.Store, key string) (id int64) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), `SELECT id FROM customers WHERE key = $1`, key).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// What a reservation's id carries is resolved as a hit is, on any node.
func TestResolveByID(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := planstest.NewStore(t, url), idleCatalog(t, url, testOptions())
	planstest.Populate(t, s)
	planstest.Declare(t, s, "spare")
	ctx := t.Context()
	want := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	key := want.Counters[0].Key
	spare := planstest.Must[*meterEntry](t)(c.meterEntry(ctx, "spare")).meter.ID
	for range 2 { // read, and remembered
		got, customer, meter, err := c.ResolveByID(ctx, key.Customer, key.Meter, 0)
		if err != nil || got != want || customer != "acme" || meter != "api" {
			t.Errorf("%p %q %q %v, want %p", got, customer, meter, err, want)
		}
		got, customer, meter, err = c.ResolveByID(ctx, key.Customer, spare, 0)
		if err != nil || got.NumLimits() != 0 || got.Counters[0].Key != (model.CounterKey{Customer: key.Customer, Meter: spare}) || customer != "acme" ||
			meter != "spare" {
			t.Errorf("a meter beside the plan: %+v %q %q %v", got, customer, meter, err)
		}
		if _, _, _, err := c.ResolveByID(ctx, key.Customer+1000, key.Meter, 0); !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Errorf("nobody: %v", err)
		}
		if _, _, _, err := c.ResolveByID(ctx, key.Customer, spare+1000, 0); !errors.Is(err, plans.ErrUnknownMeter) {
			t.Errorf("no meter: %v", err)
		}
	}
	// A newer change is reached before the answer.
	planstest.PutPlan(t, s, "basic", planstest.Hourly(70))
	got, _, _, err := c.ResolveByID(ctx, key.Customer, key.Meter, planstest.ChangeNumber(t, s))
	if err != nil || planstest.LimitOf(got) != 70 {
		t.Errorf("after a change: %v %v", got, err)
	}
	if _, _, _, err := c.ResolveByID(ctx, key.Customer, key.Meter, planstest.ChangeNumber(t, s)+1); err == nil {
		t.Error("a change that is not there is reached")
	}
}

// A customer that this node was told is not there is found by its number, and one whose
// key has become another's is not taken for that.
func TestResolveByIDAfterItsKeyMoved(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := planstest.NewStore(t, url), idleCatalog(t, url, testOptions())
	planstest.Populate(t, s)
	ctx := t.Context()
	if _, err := c.Resolve(ctx, "jane", "api", 0); !errors.Is(err, plans.ErrUnknownCustomer) {
		t.Fatal(err)
	}
	planstest.PutCustomer(t, s, "jane", planstest.OnPlan("basic"))
	jane := customerID(t, s, "jane")
	meter := planstest.Must[*meterEntry](t)(c.meterEntry(ctx, "api")).meter.ID
	if _, key, _, err := c.ResolveByID(ctx, jane, meter, 0); err != nil || key != "jane" {
		t.Errorf("%q %v", key, err)
	}
	if _, err := s.EraseCustomer(ctx, "jane"); err != nil {
		t.Fatal(err)
	}
	planstest.PutCustomer(t, s, "jane", planstest.OnPlan("basic"))
	other := customerID(t, s, "jane")
	if err := c.CatchUp(ctx, planstest.ChangeNumber(t, s)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.ResolveByID(ctx, jane, meter, 0); !errors.Is(err, plans.ErrUnknownCustomer) {
		t.Errorf("an erased customer: %v", err)
	}
	if _, key, _, err := c.ResolveByID(ctx, other, meter, 0); err != nil || key != "jane" {
		t.Errorf("the new one: %q %v", key, err)
	}
}

// What is no hit makes nobody, and finds meters that the plan does not have.
func TestResolveKnown(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	options := testOptions()
	options.DefaultPlan = "basic"
	s, c := planstest.NewStore(t, url), idleCatalog(t, url, options)
	planstest.Populate(t, s)
	planstest.Declare(t, s, "spare")
	ctx := t.Context()
	want := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	if got, err := c.ResolveKnown(ctx, "acme", "api", 0); err != nil || got != want {
		t.Errorf("%p %v, want %p", got, err, want)
	}
	got, err := c.ResolveKnown(ctx, "acme", "spare", 0)
	if err != nil || got.NumLimits() != 0 || got.Change != want.Change {
		t.Errorf("a meter beside the plan: %+v %v", got, err)
	}
	for customer, meter := range map[string]string{"nobody": "api", "a/b": "api"} {
		if _, err := c.ResolveKnown(ctx, customer, meter, 0); !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Errorf("%s: %v", customer, err)
		}
	}
	if _, err := s.GetCustomer(ctx, "nobody"); !errors.Is(err, plans.ErrUnknownCustomer) {
		t.Errorf("it was made: %v", err)
	}
	if _, err := c.ResolveKnown(ctx, "acme", "none", 0); !errors.Is(err, plans.ErrUnknownMeter) {
		t.Errorf("no meter: %v", err)
	}
}

// In an outage what was asked for before is answered from memory.
func TestResolveByIDInAnOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	admin, c := newNode(t, server.URL())
	planstest.Populate(t, admin)
	ctx := t.Context()
	// A change that the node hears of later takes what is remembered away.
	if err := c.CatchUp(ctx, planstest.ChangeNumber(t, admin)); err != nil {
		t.Fatal(err)
	}
	key := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0)).Counters[0].Key
	if _, _, _, err := c.ResolveByID(ctx, key.Customer, key.Meter, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // written, and read again
		if err := c.Returning(ctx, storeOf(c), "api"); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	testkit.Eventually(t, "the outage", func() bool {
		return !c.FreshWithin(10*time.Millisecond) && errors.Is(c.Trouble(), session.ErrUnavailable)
	})
	if _, customer, meter, err := c.ResolveByID(ctx, key.Customer, key.Meter, 0); err != nil || customer != "acme" || meter != "api" {
		t.Errorf("%q %q %v", customer, meter, err)
	}
	if err := c.Returning(ctx, storeOf(c), "api"); err != nil || !c.Returns(key.Meter) {
		t.Errorf("what is known: %v", err)
	}
	if _, _, _, err := c.ResolveByID(ctx, key.Customer+1, key.Meter, 0); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("a miss: %v", err)
	}
}
