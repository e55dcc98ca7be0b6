package plans

import (
	"testing"

	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/model"
)

// TestTargetsByID: the same as Resolve's, and nothing of it is remembered.
func TestTargetsByID(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := newStore(t, url)
	c := start(t, NewCatalog(s, testOptions()))
	populate(t, s)
	declare(t, s, "other")
	putCustomer(t, s, "gone", onPlan("basic"))
	gone := must[*Customer](t)(s.GetCustomer(t.Context(), "gone"))
	if err := s.ArchiveCustomer(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	acme := must[*Customer](t)(s.GetCustomer(t.Context(), "acme"))
	api := int32(count(t, s, "id FROM meters WHERE key = 'api'"))
	other := int32(count(t, s, "id FROM meters WHERE key = 'other'"))
	keys := []model.CounterKey{
		{Customer: acme.ID, Meter: api, Attribute: "ip=1"},
		{Customer: acme.ID, Meter: other, Attribute: "ip=1"},
		{Customer: gone.ID, Meter: api},
		{Customer: 77, Meter: api},
		{Customer: acme.ID, Meter: api, Attribute: "ip=2"},
	}
	targets := must[[]*model.Target](t)(c.Targets(t.Context(), keys))
	if targets[2] != nil || targets[3] != nil || targets[0] == nil || targets[0] != targets[4] {
		t.Fatalf("%v", targets)
	}
	if limitOf(targets[0]) != 5 || targets[1].NumLimits() != 0 || targets[1].Counters[0].Key.Meter != other {
		t.Errorf("%v", targets)
	}
	if _, ok := c.memory.Load().customers.Get("acme", 0); ok {
		t.Error("a customer was remembered")
	}
	if want := resolved(t, c, "acme"); want.Change != targets[0].Change {
		t.Errorf("change %d, Resolve says %d", targets[0].Change, want.Change)
	}
	putPlan(t, newStore(t, url), "basic", hourly(9)) // by another node
	if targets := must[[]*model.Target](t)(c.Targets(t.Context(), keys[:1])); limitOf(targets[0]) != 9 {
		t.Errorf("the limit is still %d", limitOf(targets[0]))
	}
	if targets := must[[]*model.Target](t)(c.Targets(t.Context(), nil)); len(targets) != 0 {
		t.Error("targets of nothing")
	}
}
