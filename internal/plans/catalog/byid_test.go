package catalog

import (
	"testing"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// TestTargetsByID: the same as Resolve's, and nothing of it is remembered.
func TestTargetsByID(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	c := start(t, New(planstest.NewPool(t, url), testOptions()))
	s := storeOf(c)
	planstest.Populate(t, s)
	planstest.Declare(t, s, "other")
	planstest.PutCustomer(t, s, "gone", planstest.OnPlan("basic"))
	gone := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), "gone"))
	if err := s.ArchiveCustomer(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	acme := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), "acme"))
	api := int32(planstest.Count(t, s, "id FROM meters WHERE key = 'api'"))
	other := int32(planstest.Count(t, s, "id FROM meters WHERE key = 'other'"))
	keys := []model.CounterKey{
		{Customer: acme.ID, Meter: api, Attribute: "ip=1"},
		{Customer: acme.ID, Meter: other, Attribute: "ip=1"},
		{Customer: gone.ID, Meter: api},
		{Customer: 77, Meter: api},
		{Customer: acme.ID, Meter: api, Attribute: "ip=2"},
	}
	targets := planstest.Must[[]*model.Target](t)(c.Targets(t.Context(), keys))
	if targets[2] != nil || targets[3] != nil || targets[0] == nil || targets[0] != targets[4] {
		t.Fatalf("%v", targets)
	}
	if planstest.LimitOf(targets[0]) != 5 || targets[1].NumLimits() != 0 || targets[1].Counters[0].Key.Meter != other {
		t.Errorf("%v", targets)
	}
	if _, ok := c.memory.Load().customers.Get("acme", 0); ok {
		t.Error("a customer was remembered")
	}
	if want := resolved(t, c, "acme"); want.Change != targets[0].Change {
		t.Errorf("change %d, Resolve says %d", targets[0].Change, want.Change)
	}
	planstest.PutPlan(t, planstest.NewStore(t, url), "basic", planstest.Hourly(9)) // by another node
	if targets := planstest.Must[[]*model.Target](t)(c.Targets(t.Context(), keys[:1])); planstest.LimitOf(targets[0]) != 9 {
		t.Errorf("the limit is still %d", planstest.LimitOf(targets[0]))
	}
	if targets := planstest.Must[[]*model.Target](t)(c.Targets(t.Context(), nil)); len(targets) != 0 {
		t.Error("targets of nothing")
	}
}

// TestTargetsOfAnEmptyMemory: the first contact replaces the memory, during the first read. Upkeep must not
// take the customers of that read for archived ones.
func TestTargetsOfAnEmptyMemory(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := planstest.NewStore(t, url)
	planstest.Populate(t, s)
	acme := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), "acme"))
	api := int32(planstest.Count(t, s, "id FROM meters WHERE key = 'api'"))
	c := New(s.Pool(), testOptions())
	if targets := planstest.Must[[]*model.Target](t)(c.Targets(t.Context(), []model.CounterKey{{Customer: acme.ID, Meter: api}})); targets[0] == nil {
		t.Error("acme is taken for archived")
	}
}
