package closing

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/planstest"
)

// adjust corrects the usage of an hour.
func (w *world) adjust(customer, meter, at string, cost int64, id string) {
	w.Helper()
	target, err := w.catalog.ResolveKnown(w.Context(), customer, meter, 0)
	w.check(err)
	_, err = w.engine.Adjust(w.Context(), locked.Adjustment{
		Target: target, ID: model.NewID("adjustment", id), Cost: cost, At: planstest.Instant(at), Reason: "a test",
	})
	w.check(err)
}

// unclaimed is how many adjustments no invoice has taken.
func (w *world) unclaimed(customer int64) int64 {
	w.Helper()
	return planstest.Count(w, w.store, `count(*) FROM adjustments a WHERE a.customer = $1 AND NOT EXISTS (
		SELECT FROM line_adjustments l JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'
		WHERE l.customer = a.customer AND l.meter = a.meter AND l.hour = a.hour AND l.key = a.key)`, customer)
}

// adds fails unless the pages of a line's usage add up to its quantity, however long they are.
func (w *world) adds(i *billing.Invoice, line *billing.Line) {
	w.Helper()
	for _, limit := range []int{0, 1, 2, 1000} {
		sum, page := int64(0), plans.Page{Limit: limit}
		for {
			u, err := w.invoices.LineUsage(w.Context(), i.ID, line.N, page)
			w.check(err)
			if limit > 0 && len(u.Hours)+len(u.Adjustments) > limit {
				w.Errorf("a page of %d has %d", limit, len(u.Hours)+len(u.Adjustments))
			}
			for _, h := range u.Hours {
				sum += h.Admitted
			}
			for _, a := range u.Adjustments {
				sum += a.Cost
			}
			if page.Cursor = u.Next; u.Next == "" {
				break
			}
		}
		if sum != line.Quantity {
			w.Errorf("pages of %d: the usage of line %d of %s adds up to %d, not %d", limit, line.N, i.Status, sum, line.Quantity)
		}
	}
}

// A correction that comes to no money has no line, and its adjustments are taken all the same.
// The next correction is of what came later only. All that lines count can be followed.
func TestACorrectionOfNothingTakesItsAdjustments(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01","included":100}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "pro")
	for hour := range 3 {
		planstest.SetClock(t, w.store, "clock", fmt.Sprintf("2026-01-10T%02d:10:00Z", hour))
		w.hit("acme", "api", 10)
	}
	w.clock("2026-01-20T00:00:00Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 7, "own")
	w.clock("2026-02-01T01:00:10Z") // final: 37 of 100 that are included
	w.adjust("acme", "api", "2026-01-12T00:00:00Z", 60, "first")
	w.clock("2026-03-01T00:00:10Z")
	if n := w.unclaimed(id); n != 0 {
		t.Errorf("%d adjustments are unclaimed", n)
	}
	w.adjust("acme", "api", "2026-01-12T00:00:00Z", 10, "second")
	w.adjust("acme", "api", "2026-01-13T00:00:00Z", -2, "third")
	w.clock("2026-04-01T01:00:10Z")
	all := w.stored(id)
	if len(all) != 3 || len(all[1].Lines) != 2 || len(all[2].Lines) != 3 {
		t.Fatalf("%d invoices: %+v", len(all), all)
	}
	c := all[2].Lines[2]
	if c.Kind != billing.LineCorrection || c.Quantity != 8 || c.Before.Quantity != 97 || c.AmountMinor != 5 || c.OfInvoice != all[0].ID {
		t.Errorf("%+v", c)
	}
	if n := w.unclaimed(id); n != 0 {
		t.Errorf("%d adjustments are unclaimed", n)
	}
	w.adds(all[0], &all[0].Lines[1])
	w.adds(all[2], &c)
	w.clock("2026-04-20T00:00:00Z")
	w.hit("acme", "api", 5)
	w.adjust("acme", "api", "2026-04-11T00:00:00Z", -2, "april")
	w.clock("2026-05-01T00:00:10Z")
	draft, err := w.invoices.Invoice(t.Context(), w.stored(id)[3].ID)
	w.check(err)
	if draft.Status != billing.StatusDraft || draft.Lines[1].Quantity != 3 {
		t.Fatalf("%+v", draft)
	}
	w.adds(draft, &draft.Lines[1])
	for _, page := range []plans.Page{{Limit: 1001}, {Limit: -1}, {Cursor: "nonsense"}} {
		if _, err := w.invoices.LineUsage(t.Context(), draft.ID, 2, page); len(planstest.Fields(err)) != 1 || planstest.Fields(err)[0] == "" {
			t.Errorf("%+v: %v", page, err)
		}
	}
}

// What invoices have taken is not summed up again at each close: a customer's age must not count.
func TestTakenAdjustmentsAreNotLookedAt(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.02"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "pro")
	source, err := os.ReadFile("../invoices/corrections.go")
	w.check(err)
	_, correctable, _ := strings.Cut(string(source), "const correctable = `")
	correctable, _, _ = strings.Cut(correctable, "`")
	found := func(when string, want int64) {
		t.Helper()
		rows, err := w.store.Pool().Query(t.Context(), correctable, []int64{id}, []int64{math.MaxInt64})
		w.check(err)
		for rows.Next() {
			want--
		}
		if w.check(rows.Err()); want != 0 {
			t.Errorf("%s: %d closed lines fewer than wanted may be corrected", when, want)
		}
	}
	w.adjust("acme", "api", "2026-01-01T00:00:00Z", 3, "in time")
	w.clock("2026-02-01T01:00:10Z")
	found("january is final, with its adjustment", 0)
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 5, "late")
	found("an adjustment came", 1)
	w.clock("2026-03-01T00:00:10Z")
	found("the next draft has it", 0)
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 5, "later")
	found("another came", 1)
	w.clock("2026-04-01T01:00:10Z")
	found("at last", 0)
	w.says(
		id, "period 01-01..02-01 finalized 2006 due 2006: base 0 2000, usage 3 6",
		"period 02-01..03-01 finalized 2010 due 2010: base 0 2000, usage 0 0, correction 5 10",
		"period 03-01..04-01 finalized 2010 due 2010: base 0 2000, usage 0 0, correction 5 10",
	)
}
