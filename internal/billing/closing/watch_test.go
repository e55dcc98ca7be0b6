package closing

import (
	"strconv"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// A customer whose period cannot be closed is counted and named, and holds up no other. When the
// cause is gone, it is taken up again.
func TestABlockedCustomerIsCounted(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	bad, good := w.customer("bad", "pro"), w.customer("good", "pro")
	real := planstest.PutCustomer(t, w.store, "real", planstest.OnPlan("pro"))
	standing := func(wantBlocked int64) {
		t.Helper()
		w.check(w.worker.watch(t.Context()))
		due := pgtest.Query[int64](t, w.url, "SELECT due_at FROM open_periods WHERE customer_id = $1", real.ID)
		if blocked, oldest := w.worker.Standing(); blocked != wantBlocked || oldest != due {
			t.Errorf("%d blocked, the oldest due at %d; want %d, %d", blocked, oldest, wantBlocked, due)
		}
	}
	standing(0)
	pgtest.Exec(t, w.url, `UPDATE open_periods SET prices = '{"api":{"meter":"api","model":"nothing"}}' WHERE customer_id = `+strconv.FormatInt(bad, 10))
	w.clock("2026-02-01T02:00:00Z")
	standing(1)
	if got := w.stored(good); len(got) != 1 || got[0].Status != billing.StatusFinalized {
		t.Errorf("the other customer has %+v", got)
	}
	if got := w.stored(bad); len(got) != 0 {
		t.Errorf("the blocked one has %+v", got)
	}
	if closed, finalized, failed := w.worker.Worked(); closed != 1 || finalized != 1 || failed != 1 {
		t.Errorf("%d closed, %d finalized, %d failed", closed, finalized, failed)
	}
	if w.log.Count("cannot be closed") != 1 {
		t.Errorf("the log names %d", w.log.Count("cannot be closed"))
	}
	pgtest.Exec(t, w.url, "UPDATE open_periods SET prices = '{}', retry_at = 0")
	w.workOff()
	standing(0)
	if got := w.stored(bad); len(got) != 1 || got[0].Status != billing.StatusFinalized {
		t.Errorf("afterwards it has %+v", got)
	}
}
