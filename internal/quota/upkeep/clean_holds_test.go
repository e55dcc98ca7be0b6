package upkeep

import (
	"fmt"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestHoldsAreCleaned: what nobody looks at any more is taken off by the cleaner, and with a
// customer that is cleared its holds go.
func TestHoldsAreCleaned(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	limits := []*model.Limit{quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "allocation", Limit: 10, Per: "ip"})}
	base := model.NewTarget(1, quotatest.FreshCustomers(1), 1, limits, quotatest.Target(1, 1, 1).Periods, nil)
	cleaner := db.cleaner(clock, base)
	cleaner.options.Expire = e.Expire
	for n := range 3 {
		if r, err := e.Reserve(ctx, quotatest.IP(base, fmt.Sprint(n)), 1, 1e6, model.NewID("reservation", fmt.Sprint(n))); err != nil || !r.Allowed {
			t.Fatal(err)
		}
	}
	walk := func() {
		for range model.Shards {
			if _, err := cleaner.step(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk()
	if holds, counters := rowsIn(t, db, "holds"), rowsIn(t, db, "counters"); holds != 6 || counters != 4 {
		t.Fatalf("%d holds and %d counters that count", holds, counters)
	}
	clock.Set(quotatest.Epoch + 1e6 + cleaner.idle)
	walk() // takes the holds off
	clock.Set(quotatest.Epoch + 1e6 + 3*cleaner.idle)
	walk()                                                                                                 // and then the counters
	if holds, counters := rowsIn(t, db, "holds"), rowsIn(t, db, "counters"); holds != 0 || counters != 1 { // the own one stays
		t.Fatalf("%d holds and %d counters are left", holds, counters)
	}
}
