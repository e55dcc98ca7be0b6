package catalog

import (
	"errors"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// That a meter's units may come back is written once, stays, and is known to all nodes: to
// the one that was asked at once, to those that begin later from their beginning.
func TestReturning(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	a, b := idleCatalog(t, url, testOptions()), idleCatalog(t, url, testOptions())
	planstest.Populate(t, storeOf(a))
	planstest.Declare(t, storeOf(a), "other")
	api := planstest.Must[*meterEntry](t)(a.meterEntry(t.Context(), "api")).meter.ID
	other := planstest.Must[*meterEntry](t)(a.meterEntry(t.Context(), "other")).meter.ID
	if !b.Returns(api) || !b.Returns(other) {
		t.Error("a node that does not know yet says no")
	}
	start(t, a)
	start(t, b)
	for _, c := range []*Catalog{a, b} {
		if c.Returns(api) || c.Returns(other) {
			t.Error("a node says yes before there was any")
		}
	}
	if err := a.Returning(t.Context(), storeOf(a), "api"); err != nil || !a.Returns(api) || a.Returns(other) {
		t.Fatalf("on the node that was asked: %v, %v %v", err, a.Returns(api), a.Returns(other))
	}
	testkit.Eventually(t, "the other node", func() bool { return b.Returns(api) })
	change := planstest.ChangeNumber(t, storeOf(a))
	for _, c := range []*Catalog{a, b} {
		if err := c.Returning(t.Context(), storeOf(c), "api"); err != nil {
			t.Fatal(err)
		}
	}
	if err := storeOf(a).SetReturning(t.Context(), "api"); err != nil {
		t.Fatal(err)
	}
	if got := planstest.ChangeNumber(t, storeOf(a)); got != change {
		t.Errorf("what is known was written again: change %d, not %d", got, change)
	}
	if _, _, err := storeOf(a).PutMeter(t.Context(), "api", plans.PutMeterInput{Unit: "call"}); err != nil {
		t.Fatal(err)
	}
	late := start(t, idleCatalog(t, url, testOptions()))
	for _, c := range []*Catalog{a, late} {
		if !c.Returns(api) || c.Returns(other) {
			t.Errorf("after another unit: %v %v", c.Returns(api), c.Returns(other))
		}
	}
	for _, key := range []string{"none", "a b", ""} {
		if err := a.Returning(t.Context(), storeOf(a), key); !errors.Is(err, plans.ErrUnknownMeter) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// Of more meters than are kept, those of any may come back.
func TestManyReturning(t *testing.T) {
	t.Parallel()
	c := idleCatalog(t, pgtest.NewDatabase(t), testOptions())
	planstest.Declare(t, storeOf(c), "api")
	if _, err := c.pool.Exec(t.Context(), `INSERT INTO meters (key, name, unit, change, returns)
		SELECT 'm' || n, '', 'x', 1, true FROM generate_series(1, $1::int) n`, maxReturning); err != nil {
		t.Fatal(err)
	}
	api := planstest.Must[*meterEntry](t)(c.meterEntry(t.Context(), "api")).meter.ID
	start(t, c)
	if c.Returns(api) {
		t.Error("a meter that is not among those kept")
	}
	if err := c.Returning(t.Context(), storeOf(c), "api"); err != nil {
		t.Fatal(err)
	}
	if !c.Returns(api) || !c.Returns(api+1_000_000) {
		t.Error("some are left out")
	}
}

// Each hit asks.
func TestReturnsTakesNoAllocation(t *testing.T) {
	c := start(t, idleCatalog(t, pgtest.NewDatabase(t), testOptions()))
	if n := testing.AllocsPerRun(1000, func() { c.Returns(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
