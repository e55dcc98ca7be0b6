package catalog

import (
	"fmt"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// A clock that is set counts at once on the node that was asked and soon on others; what
// was resolved before is older by its number; and nobody else is concerned.
func TestASetClockCountsOnAllNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	here, asked := newNode(t, url)
	_, other := newNode(t, url)
	planstest.Populate(t, here)
	planstest.SetClock(t, here, "c1", "2026-01-01T00:00:00Z")
	planstest.SetClock(t, here, "c2", "2020-01-01T00:00:00Z")
	planstest.OnClock(t, here, "timed", "c1")
	planstest.OnClock(t, here, "elsewhere", "c2")
	resolve := func(c *Catalog, customer string) *model.Target {
		return planstest.Must[*model.Target](t)(c.Resolve(t.Context(), customer, "api", 0))
	}
	// What the node remembers of a customer goes with the poll that brings the customer's change, even if it is newer.
	soon(t, asked, "what was written", func() bool { return true })
	real0, else0 := resolve(asked, "acme"), resolve(asked, "elsewhere")
	var held *model.Target
	for i, now := range []string{"2026-02-01T00:00:00Z", "2025-01-01T00:00:00Z", "2026-02-01T00:00:00.5Z"} {
		testkit.Eventually(t, "the clock as it was", func() bool { held = resolve(other, "timed"); return held.Clock != nil })
		resolve(asked, "timed")
		planstest.SetClock(t, here, "c1", now)
		if got := resolve(asked, "timed"); got.Clock == nil || got.Clock.Key != "c1" || got.Clock.Now != planstest.Instant(now) || got.Change <= held.Change {
			t.Errorf("%d: on the node that was asked: %+v, change %d after %d", i, got.Clock, got.Change, held.Change)
		}
		soon(t, other, "the clock", func() bool { return resolve(other, "timed").Clock.Now == planstest.Instant(now) })
	}
	if real0 != resolve(asked, "acme") || else0 != resolve(asked, "elsewhere") || real0.Clock != nil ||
		else0.Clock.Now != planstest.Instant("2020-01-01T00:00:00Z") {
		t.Error("a clock that was set touched those who do not live by it")
	}
}

func TestClocksOfManyCustomersAreOneFact(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := newNode(t, url)
	planstest.Populate(t, s)
	planstest.SetClock(t, s, "c1", "2026-01-01T00:00:00Z")
	for i := range 10 {
		planstest.OnClock(t, s, fmt.Sprint("c", i), "c1")
	}
	for _, now := range []string{"2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"} {
		planstest.SetClock(t, s, "c1", now)
		for i := range 10 {
			if got := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), fmt.Sprint("c", i), "api", 0)); got.Clock.Now != planstest.Instant(now) {
				t.Errorf("%d: %+v", i, got.Clock)
			}
		}
	}
	account := planstest.Must[*Account](t)(c.Meters(t.Context(), "c1"))
	if account.Clock == nil || account.Clock.Key != "c1" || account.Anonymous {
		t.Errorf("%+v", account)
	}
}
