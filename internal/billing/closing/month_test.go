package closing

import (
	"testing"

	"quotad/internal/billing"
	"quotad/internal/testkit/planstest"
)

func TestAPeriodIsClosedAndFinalized(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01","included":3}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "pro")
	w.clock("2026-01-10T00:00:00Z")
	w.hit("acme", "api", 103)
	w.clock("2026-02-01T00:00:09.999999Z")
	if got := w.stored(id); len(got) != 0 {
		t.Fatalf("before the close delay: %+v", got)
	}
	w.clock("2026-02-01T00:00:10Z")
	got := w.stored(id)
	if len(got) != 1 || got[0].Status != billing.StatusDraft || got[0].TotalMinor != 2100 {
		t.Fatalf("%+v", got)
	}
	w.clock("2026-02-01T01:00:10Z")
	got = w.stored(id)
	if len(got) != 1 || got[0].Status != billing.StatusFinalized || got[0].Number != "TEST-1" || got[0].TotalMinor != 2100 {
		t.Fatalf("%+v", got)
	}
	w.clock("2027-01-01T03:00:00Z")
	if got = w.stored(id); len(got) != 12 || got[11].Number != "TEST-12" {
		t.Fatalf("%d invoices: %+v", len(got), got[len(got)-1])
	}
}
