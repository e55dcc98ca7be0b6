package quota

import (
	"testing"

	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestMemorySparesTheDatabase: a refused customer's next hit sends no statement, on a
// node that may use its memory, until there is something to admit again.
func TestMemorySparesTheDatabase(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	usable := true
	e := db.startEngine(t, clock, func(o *Options) { o.MemoryUsable = func() bool { return usable } })
	target := quotatest.Target(quotatest.FreshCustomers(1), 1, 1, quotatest.Window(t, "a", 1, "1h"))
	decide := func(allowed, memory bool) {
		t.Helper()
		before := e.Stats()
		d, err := e.Decide(ctx, target, 1)
		after := e.Stats()
		if err != nil || d.Allowed != allowed || (d.AsOf != 0) != memory || (after.Batches == before.Batches) != memory {
			t.Errorf("%s, %v; %d statements", d.String(), err, after.Statements-before.Statements)
		}
	}
	decide(true, false)
	decide(false, false)
	decide(false, true)
	usable = false
	decide(false, false)
	usable = true
	decide(false, true)
	clock.Set(quotatest.Epoch + 3600e6)
	decide(true, false)
	decide(false, false)
}
