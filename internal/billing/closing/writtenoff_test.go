package closing

import (
	"testing"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/testkit/planstest"
)

// Base in advance that was on an invoice that became void is written off: nobody gives it back, and
// nobody charges it again. That of a reissue is given back.
func TestVoidBaseIsNotGivenBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    string // of the invoice that becomes void
		until   string // then it is final
		ends    string // when billing ends, a third into the period
		reissue bool
		want    string // what the period's own invoice says; "": there is none
	}{
		{"an opening", billing.KindOpening, "2026-01-01T01:00:10Z", "2026-01-11T08:00:00Z", false, ""},
		{
			"an opening that is made again", billing.KindOpening, "2026-01-01T01:00:10Z", "2026-01-11T08:00:00Z", true,
			"period 01-01..01-11 paid -1860 due 0: unused 0 -1860",
		},
		{"the period before", billing.KindPeriod, "2026-02-01T01:00:10Z", "2026-02-10T08:00:00Z", false, ""},
		{
			"the period before, made again", billing.KindPeriod, "2026-02-01T01:00:10Z", "2026-02-10T08:00:00Z", true,
			"period 02-01..02-10 paid -1860 due 0: unused 0 -1860",
		},
	} {
		w := newWorld(t)
		in := plans.PlanInput{Name: "Ahead", Currency: "USD", Interval: "month", IntervalCount: 1, BasePriceMinor: 2790, BaseIn: plans.InAdvance}
		planstest.PutPlan(t, w.store, "ahead", in)
		planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
		id := w.customer("acme", "ahead")
		w.clock(c.until)
		var void *billing.Invoice
		for _, i := range w.stored(id) {
			if i.Kind == c.kind {
				void = i
			}
		}
		_, err := w.invoices.Void(t.Context(), void.ID, "a test", c.reissue)
		w.check(err)
		w.account(c.ends)
		w.clock("2026-03-20T00:00:00Z")
		got := ""
		for _, i := range w.stored(id) {
			if i.Kind == billing.KindPeriod && i.PeriodStart >= void.PeriodEnd || c.kind == billing.KindOpening && i.Kind == billing.KindPeriod {
				got = said([]*billing.Invoice{i})
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
