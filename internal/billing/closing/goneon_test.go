package closing

import (
	"errors"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
	"quotad/internal/testkit/planstest"
)

// cutInApril has customer acme on a base of 3,000 in advance since April 1, and on another plan,
// without a base, since April 16. April's first half has an invoice of 5,000 units, which gives 1,500
// back, and which is final.
func cutInApril(t *testing.T) (w *world, id int64) {
	w = newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("usage", 0, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	in := plans.PlanInput{Name: "Ahead", Currency: "USD", Interval: "month", IntervalCount: 1, BasePriceMinor: 3000, BaseIn: plans.InAdvance}
	price := "0.01"
	in.Prices = []plans.Price{{Meter: "api", Model: "per_unit", UnitPrice: &price}}
	planstest.PutPlan(t, w.store, "ahead", in)
	planstest.SetClock(t, w.store, "clock", "2026-04-01T00:00:00Z")
	id = w.customer("acme", "ahead")
	w.clock("2026-04-01T01:00:10Z")
	w.hit("acme", "api", 5000)
	w.clock("2026-04-16T00:00:00Z")
	to := planstest.OnPlan("usage")
	to.BillingAnchor, to.Change = "2026-01-01T00:00:00", plans.ChangeNow
	planstest.PutCustomer(t, w.store, "acme", to)
	w.clock("2026-04-16T01:00:10Z")
	w.says(id, aprilOpening, "period 04-01..04-16 finalized 3500 due 3500: usage 5000 5000, unused 0 -1500")
	return w, id
}

const aprilOpening = "opening 04-01..05-01 finalized 3000 due 3000: base 0 3000"

// newest is the invoice of a kind and period that was made last.
func (w *world) newest(customer int64, kind, start string) (newest *billing.Invoice) {
	w.Helper()
	for _, i := range w.stored(customer) {
		if i.Kind == kind && dateOf(i.PeriodStart) == start && (newest == nil || i.MadeAt >= newest.MadeAt) {
			newest = i
		}
	}
	return newest
}

func (w *world) void(i *billing.Invoice, reissue bool) error {
	_, err := w.invoices.Void(w.Context(), i.ID, "a test", reissue)
	return err
}

// What a void invoice gave back of a base in advance goes on to the next invoice, from void to void,
// and is never there twice.
func TestUnusedOfAVoidInvoiceGoesOn(t *testing.T) {
	w, id := cutInApril(t)
	opening, april := w.newest(id, billing.KindOpening, "04-01"), w.newest(id, billing.KindPeriod, "04-01")
	w.check(w.void(april, false))
	upcoming, err := w.invoices.Upcoming(t.Context(), "acme")
	w.check(err)
	if got := said([]*billing.Invoice{upcoming}); got != "period 04-16..05-01 draft -1500 due 0: usage 0 0, unused 0 -1500" {
		t.Errorf("upcoming: %s", got)
	}
	w.hit("acme", "api", 2000)
	w.clock("2026-05-01T01:00:10Z")
	next := w.newest(id, billing.KindPeriod, "04-16")
	const second = "period 04-16..05-01 %s 500 due 500: usage 2000 2000, unused 0 -1500"
	april1, voided := "period 04-01..04-16 void 3500 due 3500: usage 5000 5000, unused 0 -1500", strings.Replace(second, "%s", "void", 1)
	w.says(id, aprilOpening, april1, strings.Replace(second, "%s", "finalized", 1))
	if next.Lines[1].OfInvoice != april.ID || next.Lines[1].Corrects() != "" || dateOf(next.Lines[1].From) != "04-16" {
		t.Errorf("%+v", next.Lines[1])
	}
	if err := w.void(opening, false); !errors.Is(err, billing.ErrReferred) {
		t.Errorf("void of an invoice of which another one gave back what went on: %v", err)
	}
	// With a reissue it is on that one, and without on the next: each time once.
	w.check(w.void(next, true))
	w.clock("2026-05-01T02:00:10Z")
	w.says(id, aprilOpening, april1, voided, strings.Replace(second, "%s", "finalized", 1))
	w.check(w.void(w.newest(id, billing.KindPeriod, "04-16"), false))
	w.clock("2026-07-01T01:00:10Z")
	w.says(id, aprilOpening, april1, voided, voided,
		"period 05-01..06-01 paid -1500 due 0: usage 0 0, unused 0 -1500",
		"period 06-01..07-01 paid 0 due 0: usage 0 0")
	// What went on is of the opening's base: no more than the rest may be noted.
	_, _, err = w.invoices.CreditNote(t.Context(), opening.ID, assembly.NoteRequest{
		Lines: []assembly.NoteLine{{N: 1, AmountMinor: 1501}}, Reason: "x", To: assembly.Outside,
	}, "much", 1)
	if !errors.Is(err, billing.ErrTooMuch) || !strings.Contains(err.Error(), "1500 is left of line 1") {
		t.Errorf("%v", err)
	}
}

// A reissue of the period itself gives back by itself.
func TestUnusedOfAVoidInvoiceIsOnItsReissue(t *testing.T) {
	w, id := cutInApril(t)
	w.check(w.void(w.newest(id, billing.KindPeriod, "04-01"), true))
	w.clock("2026-06-01T01:00:10Z")
	w.says(id, aprilOpening, "period 04-01..04-16 void 3500 due 3500: usage 5000 5000, unused 0 -1500",
		"period 04-01..04-16 finalized 3500 due 3500: usage 5000 5000, unused 0 -1500",
		"period 04-16..05-01 paid 0 due 0: usage 0 0", "period 05-01..06-01 paid 0 due 0: usage 0 0")
}

// What went on into a draft follows the invoice that holds the base: its credit notes, and its end.
func TestUnusedThatWentOnIsOfWhatIsLeft(t *testing.T) {
	const april1 = "period 04-01..04-16 void 3500 due 3500: usage 5000 5000, unused 0 -1500"
	for _, c := range []struct {
		name string
		do   func(w *world, opening *billing.Invoice) error
		want []string
	}{
		{"noted", func(w *world, opening *billing.Invoice) error {
			_, _, err := w.invoices.CreditNote(w.Context(), opening.ID, assembly.NoteRequest{
				Lines: []assembly.NoteLine{{N: 1, AmountMinor: 2000}}, Reason: "x", To: assembly.Outside,
			}, "a", 1)
			return err
		}, []string{
			aprilOpening, "credit_note 04-01..05-01 paid -2000 due 0: base 0 -2000",
			"period 04-16..05-01 finalized 1000 due 1000: usage 2000 2000, unused 0 -1000",
		}},
		{"void", func(w *world, opening *billing.Invoice) error {
			return w.void(opening, false)
		}, []string{strings.Replace(aprilOpening, "finalized", "void", 1), "period 04-16..05-01 finalized 2000 due 2000: usage 2000 2000"}},
		{"void and made again", func(w *world, opening *billing.Invoice) error {
			return w.void(opening, true)
		}, []string{
			strings.Replace(aprilOpening, "finalized", "void", 1), aprilOpening,
			"period 04-16..05-01 finalized 500 due 500: usage 2000 2000, unused 0 -1500",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, id := cutInApril(t)
			w.check(w.void(w.newest(id, billing.KindPeriod, "04-01"), false))
			w.hit("acme", "api", 2000)
			w.clock("2026-05-01T00:00:10Z") // the draft is there
			w.check(c.do(w, w.newest(id, billing.KindOpening, "04-01")))
			w.clock("2026-05-01T01:00:10Z")
			w.says(id, append(c.want, april1)...)
		})
	}
}

// Where notes took what a line came to only by a correction, the invoice of that stands: without it
// more would have been given back than was charged. A reissue corrects again.
func TestNotesLeanOnACorrection(t *testing.T) {
	w, id := begun(t)
	w.hit("acme", "api", 100)
	w.clock("2026-02-01T01:00:10Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 50, "more")
	w.clock("2026-03-01T01:00:10Z")
	january, february := w.newest(id, billing.KindPeriod, "01-01"), w.newest(id, billing.KindPeriod, "02-01")
	_, _, err := w.invoices.CreditNote(t.Context(), january.ID, assembly.NoteRequest{
		Lines: []assembly.NoteLine{{N: 2, AmountMinor: 150}}, Reason: "x", To: assembly.Outside,
	}, "a", 1)
	w.check(err)
	if err := w.void(february, false); !errors.Is(err, billing.ErrReferred) {
		t.Errorf("%v", err)
	}
	w.check(w.void(february, true))
	w.clock("2026-03-01T02:00:10Z")
	w.says(id, "credit_note 01-01..02-01 paid -150 due 0: usage 0 -150",
		"period 01-01..02-01 finalized 2100 due 2100: base 0 2000, usage 100 100",
		"period 02-01..03-01 void 2050 due 2050: base 0 2000, usage 0 0, correction 50 50",
		"period 02-01..03-01 finalized 2050 due 2050: base 0 2000, usage 0 0, correction 50 50")
}
