package closing

import (
	"errors"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/testkit/planstest"
)

// A correction of 10¹⁵ minor units or more holds the draft that would take it, and no other one.
// When it has become smaller, that draft takes it.
func TestACorrectionThatIsTooLargeHoldsItsDraft(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	planstest.Declare(t, w.store, "mail")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.02"},{"meter":"mail","model":"per_unit","unit_price":"1"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "pro")
	w.clock("2026-02-01T01:00:10Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 6e14, "far too many")
	w.adjust("acme", "mail", "2026-01-11T00:00:00Z", 2, "some")
	held := func(when string, want ...bool) {
		t.Helper()
		w.clock(when)
		for n, i := range w.stored(id)[1:] {
			shown, err := w.invoices.Invoice(t.Context(), i.ID)
			w.check(err)
			for _, i := range []*billing.Invoice{i, shown} {
				if (i.Held != "") != want[n] || want[n] && (i.Status != billing.StatusDraft || !strings.Contains(i.Held, "The correction of meter api")) {
					t.Errorf("%s, invoice %d: %s, held %q", when, n, i.Status, i.Held)
				}
			}
		}
	}
	held("2026-03-01T00:00:10Z", true)
	held("2026-03-01T01:00:10Z", true) // when it would be finalized
	february := w.stored(id)[1]
	if _, err := w.invoices.Finalize(t.Context(), february.ID); !errors.Is(err, billing.ErrHeld) {
		t.Errorf("finalized by hand: %v", err)
	}
	if n := w.unclaimed(id); n != 1 {
		t.Errorf("%d adjustments are unclaimed", n)
	}
	w.adjust("acme", "mail", "2026-01-12T00:00:00Z", 3, "for the next invoice")
	held("2026-04-01T01:00:10Z", true, false)
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", -6e14+5, "back again")
	held("2026-04-01T02:00:11Z", false, false)
	w.says(
		id, "period 01-01..02-01 finalized 2000 due 2000: base 0 2000, usage 0 0, usage 0 0",
		"period 02-01..03-01 finalized 2210 due 2210: base 0 2000, usage 0 0, usage 0 0, correction 2 200, correction 5 10",
		"period 03-01..04-01 finalized 2300 due 2300: base 0 2000, usage 0 0, usage 0 0, correction 3 300",
	)
	if n := w.unclaimed(id); n != 0 {
		t.Errorf("%d adjustments are unclaimed at last", n)
	}
	all := w.stored(id)
	w.adds(all[1], &all[1].Lines[4])
}
