package closing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/testkit/planstest"
)

// said is invoices as a text: period, status, amounts, and lines as kind, quantity and amount.
func said(all []*billing.Invoice) string {
	var out []string
	for _, i := range all {
		var lines []string
		for _, l := range i.Lines {
			lines = append(lines, fmt.Sprintf("%s %d %d", l.Kind, l.Quantity, l.AmountMinor))
		}
		out = append(out, fmt.Sprintf("%s %s..%s %s %d due %d: %s", i.Kind, dateOf(i.PeriodStart), dateOf(i.PeriodEnd), i.Status, i.TotalMinor,
			i.AmountDueMinor, strings.Join(lines, ", ")))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// dateOf is month and day of an instant, in UTC.
func dateOf(at int64) string { return time.UnixMicro(at).UTC().Format("01-02") }

// says fails unless a customer's invoices are these, each a line.
func (w *world) says(customer int64, want ...string) {
	w.Helper()
	slices.Sort(want)
	if got := said(w.stored(customer)); got != strings.Join(want, "\n") {
		w.Errorf("invoices:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// begun is a world at the beginning of 2026 with the meter api, plan pro of 20 dollars and a cent a
// unit, and customer acme on it.
func begun(t *testing.T) (w *world, id int64) {
	w = newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	return w, w.customer("acme", "pro")
}

func (w *world) account(ends string) {
	w.Helper()
	in := &accounts.AccountInput{Seller: "default", DueDays: 14, AfterEnd: planstest.Ptr(billing.Free)}
	if ends != "" {
		in.EndsAt = planstest.Ptr(planstest.Instant(ends))
	}
	_, err := w.accounts.PutAccount(w.Context(), "acme", in, planstest.AnyVersion)
	w.check(err)
}

// Billing ends, usage is free, billing begins again as a new chain: all on one timeline.
func TestUsageIsFreeBetweenTwoChains(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-01-05T00:00:00Z")
	w.hit("acme", "api", 500)
	w.account("2026-01-11T00:00:00Z")
	w.clock("2026-01-15T00:00:00Z")
	w.hit("acme", "api", 700) // free
	w.clock("2026-01-21T00:00:00Z")
	w.account("")
	w.clock("2026-01-25T00:00:00Z")
	w.hit("acme", "api", 1100)
	w.clock("2026-03-01T01:00:10Z")
	w.says(id,
		"period 01-01..01-11 finalized 1145 due 1145: base 0 645, usage 500 500",
		"period 01-21..02-01 finalized 1810 due 1810: base 0 710, usage 1100 1100",
		"period 02-01..03-01 finalized 2000 due 2000: base 0 2000, usage 0 0",
	)
	if n := planstest.Count(t, w.store, `count(*) FROM periods WHERE customer_id = $1 AND chain = 1`, id); n != 2 {
		t.Errorf("%d periods of the second chain", n)
	}
	// Again, and this time the end is lifted before the last period is closed.
	w.account("2026-03-11T00:00:00Z")
	planstest.SetClock(t, w.store, "clock", "2026-03-21T00:00:00Z")
	w.hit("acme", "api", 7)
	w.account("")
	w.clock("2026-04-01T01:00:10Z")
	last := w.stored(id)[3:]
	if got, want := said(last), "period 03-01..03-11 finalized 645 due 645: base 0 645, usage 0 0"; !strings.HasPrefix(got, want) || len(last) != 2 ||
		last[1].Lines[1].Quantity != 0 {
		t.Errorf("%s", got)
	}
}

// A void invoice is given back whole: credits return, charges and late usage go onto the reissue,
// which is finalized by itself. A second void without one writes the period off.
func TestVoidAndReissue(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-01-10T00:00:00Z")
	w.hit("acme", "api", 100)
	_, _, _, err := w.invoices.Charge(t.Context(), "acme", billing.Charge{ID: "setup", Description: "Setup", Currency: "USD", AmountMinor: 500}, 1)
	w.check(err)
	_, _, _, err = w.invoices.Grant(t.Context(), "acme", billing.Credit{
		ID: "gift", Kind: billing.CreditPromotional, AmountMinor: 1000, Currency: "USD",
		Priority: 50,
	}, 1)
	w.check(err)
	w.clock("2026-02-01T01:00:10Z")
	w.says(id, "period 01-01..02-01 finalized 2600 due 1600: base 0 2000, usage 100 100, charge 0 500")
	first := w.stored(id)[0].ID
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 10, "late")
	left := func(want int64) {
		t.Helper()
		if got := planstest.Count(t, w.store, `left_minor FROM credits WHERE customer_id = $1`, id); got != want {
			t.Errorf("%d is left of the credit, want %d", got, want)
		}
	}
	left(0)
	void, err := w.invoices.Void(t.Context(), first, "the address was wrong", true)
	w.check(err)
	left(1000)
	if void.Status != billing.StatusVoid || void.VoidReason != "the address was wrong" {
		t.Errorf("%+v", void)
	}
	w.clock("2026-02-01T02:00:09Z")
	w.says(id,
		"period 01-01..02-01 void 2600 due 1600: base 0 2000, usage 100 100, charge 0 500",
		"period 01-01..02-01 draft 2610 due 1610: base 0 2000, usage 110 110, charge 0 500")
	w.clock("2026-02-01T02:00:10Z")
	w.says(id,
		"period 01-01..02-01 void 2600 due 1600: base 0 2000, usage 100 100, charge 0 500",
		"period 01-01..02-01 finalized 2610 due 1610: base 0 2000, usage 110 110, charge 0 500")
	left(0)
	var second *billing.Invoice
	for _, i := range w.stored(id) {
		if i.Of == first {
			second = i
		}
	}
	if second == nil || second.Number != "TEST-2" {
		t.Fatalf("%+v", second)
	}
	w.adds(second, &second.Lines[1])
	var state *billing.StateError
	if _, err := w.invoices.Void(t.Context(), first, "again", false); !errors.As(err, &state) {
		t.Errorf("void of what is void: %v", err)
	}
	_, err = w.invoices.Void(t.Context(), second.ID, "written off", false)
	w.check(err)
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 10, "later") // no correction of what is written off
	w.clock("2026-03-01T01:00:10Z")
	if got := w.stored(id); len(got) != 3 || said(got[2:]) != "period 02-01..03-01 finalized 2500 due 1500: base 0 2000, usage 0 0, charge 0 500" {
		t.Errorf("%s", said(got))
	}
	left(0)
}

// An invoice that a correction refers to cannot become void.
func TestAReferredInvoiceStands(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-02-01T01:00:10Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 10, "late")
	w.clock("2026-03-01T01:00:10Z")
	w.says(id, "period 01-01..02-01 finalized 2000 due 2000: base 0 2000, usage 0 0",
		"period 02-01..03-01 finalized 2010 due 2010: base 0 2000, usage 0 0, correction 10 10")
	if _, err := w.invoices.Void(t.Context(), w.stored(id)[0].ID, "x", false); !errors.Is(err, billing.ErrReferred) {
		t.Errorf("%v", err)
	}
}

// A base in advance is on the opening, then on the invoice of the period before. A change at once
// gives back what is not used, and charges the rest of the new plan's.
func TestBaseInAdvance(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	for key, base := range map[string]int64{"small": 2800, "large": 5600} {
		in := plans.PlanInput{Name: key, Currency: "USD", Interval: "month", IntervalCount: 1, BasePriceMinor: base, BaseIn: plans.InAdvance}
		planstest.PutPlan(t, w.store, key, in)
	}
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "small")
	w.clock("2026-01-01T01:00:09Z")
	opening := "opening 01-01..02-01 %s 2800 due 2800: base 0 2800"
	w.says(id, fmt.Sprintf(opening, "draft"))
	w.clock("2026-01-01T01:00:10Z")
	w.says(id, fmt.Sprintf(opening, "finalized"))
	w.clock("2026-02-01T01:00:10Z")
	january := "period 01-01..02-01 finalized 2800 due 2800: base 0 2800"
	w.says(id, fmt.Sprintf(opening, "finalized"), january)
	w.clock("2026-02-15T00:00:00Z")
	in := planstest.OnPlan("large")
	in.BillingAnchor, in.Change = "2026-01-01T00:00:00", plans.ChangeNow
	planstest.PutCustomer(t, w.store, "acme", in)
	w.clock("2026-02-15T01:00:10Z")
	w.says(id, fmt.Sprintf(opening, "finalized"), january,
		"period 02-01..02-15 finalized 1400 due 1400: unused 0 -1400, base 0 2800")
	w.clock("2026-03-01T01:00:10Z")
	w.says(id, fmt.Sprintf(opening, "finalized"), january,
		"period 02-01..02-15 finalized 1400 due 1400: unused 0 -1400, base 0 2800",
		"period 02-15..03-01 finalized 5600 due 5600: base 0 5600")
}

// Amounts and counts that no invoice may bear keep a draft a draft. It says why, holds up nobody
// and no later period, and is finalized when what was adjusted has made it small enough; a count
// that is full never is.
func TestHeldDrafts(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"1000000"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	w.plan("cheap", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.000000001"}]`)
	dear, full := w.customer("dear", "pro"), w.customer("full", "cheap")
	w.clock("2026-01-10T00:00:00Z")
	w.hit("dear", "api", 10_000_000) // 10¹⁵ minor units
	w.hit("full", "api", 1)
	_, err := w.store.Pool().Exec(t.Context(), `UPDATE counters SET units = 9223372036854775807 WHERE customer = $1`, full)
	w.check(err)
	w.adjust("full", "api", "2026-01-10T00:00:00Z", -5, "less")
	w.clock("2026-03-01T01:00:10Z")
	for name, id := range map[string]int64{"dear": dear, "full": full} {
		got := w.stored(id)
		if len(got) != 2 || got[0].Status != billing.StatusDraft || !strings.Contains(got[0].Held, "The usage of meter api is more") || got[0].CreditsMinor != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got) == 2 && said(got[1:]) != "period 02-01..03-01 finalized 2000 due 2000: base 0 2000, usage 0 0" {
			t.Errorf("%s, the next: %s", name, said(got))
		}
		if _, err := w.invoices.Finalize(t.Context(), got[0].ID); !errors.Is(err, billing.ErrHeld) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.adjust("dear", "api", "2026-01-10T00:00:00Z", -9_999_999, "less")
	w.clock("2026-03-01T02:00:10Z")
	if got := w.stored(dear); got[0].Status != billing.StatusFinalized || got[0].TotalMinor != 100_002_000 || got[0].Number != "TEST-3" || got[0].Held != "" {
		t.Errorf("when it is small enough: %+v", got[0])
	}
	if got := w.stored(full); got[0].Status != billing.StatusDraft {
		t.Errorf("a count that is full: %+v", got[0])
	}
}

// What is left of a credit expires when every invoice that it could pay is final, at its expiry.
func TestExpiryOfCreditsIsBooked(t *testing.T) {
	for _, leap := range []bool{false, true} {
		w, id := begun(t)
		_, _, _, err := w.invoices.Grant(t.Context(), "acme", billing.Credit{
			ID: "gift", Kind: billing.CreditPromotional, AmountMinor: 5000, Currency: "USD", Priority: 50,
			ExpiresAt: planstest.Ptr(planstest.Instant("2026-03-10T00:00:00Z")),
		}, 1)
		w.check(err)
		if !leap {
			w.clock("2026-02-01T01:00:10Z")
			w.clock("2026-03-09T23:59:59Z")
		}
		w.clock("2026-05-01T01:00:10Z")
		var got []string
		found, err := w.invoices.Credits(t.Context(), "acme", plans.Page{})
		w.check(err)
		for _, e := range found.Entries {
			got = append(got, fmt.Sprintf("%s %d at %s", e.Kind, e.AmountMinor, dateOf(e.At)))
		}
		want := []string{"expired -1000 at 03-10", "applied -2000 at 03-01", "applied -2000 at 02-01", "granted 5000 at 01-01"}
		if !slices.Equal(got, want) || found.Balances[0].LeftMinor != 0 {
			t.Errorf("leap %v: %q, %d left", leap, got, found.Balances[0].LeftMinor)
		}
		if all := w.stored(id); len(all) != 4 || all[2].AmountDueMinor != 2000 {
			t.Errorf("%s", said(all))
		}
	}
}

// A credit that expires at a period's end cannot pay its invoice, and is booked at that instant. One
// that expires a microsecond later pays first, and is booked when the invoice is final.
func TestExpiryAtThePeriodsEnd(t *testing.T) {
	w, _ := begun(t)
	for id, expires := range map[string]string{"at": "2026-02-01T00:00:00Z", "behind": "2026-02-01T00:00:00.000001Z"} {
		_, _, _, err := w.invoices.Grant(t.Context(), "acme", billing.Credit{
			ID: id, Kind: billing.CreditPaid, AmountMinor: 5000, Currency: "USD", Priority: 50, ExpiresAt: planstest.Ptr(planstest.Instant(expires)),
		}, 1)
		w.check(err)
	}
	for _, c := range []struct{ now, want string }{
		{"2026-01-31T23:59:59.999999Z", "at 5000 behind 5000"},
		{"2026-02-01T00:00:00Z", "at 0 behind 5000"},
		{"2026-02-01T00:00:10Z", "at 0 behind 5000"},
		{"2026-02-01T01:00:09Z", "at 0 behind 5000"},
		{"2026-02-01T01:00:10Z", "at 0 behind 0"},
	} {
		w.clock(c.now)
		found, err := w.invoices.Credits(t.Context(), "acme", plans.Page{})
		w.check(err)
		left := make(map[string]int64)
		for _, b := range found.Balances {
			left[b.ID] = b.LeftMinor
		}
		if got := fmt.Sprintf("at %d behind %d", left["at"], left["behind"]); got != c.want {
			t.Errorf("at %s: %s left, want %s", c.now, got, c.want)
		}
	}
	applied := planstest.Count(t, w.store, `sum(amount_minor)::bigint FROM credit_entries WHERE credit_id = 'behind' AND kind = 'applied'`)
	if applied != -2000 {
		t.Errorf("%d was applied", applied)
	}
}

// A test clock that is set back unbills nothing, and bills nothing twice.
func TestAClockThatIsSetBack(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-01-10T00:00:00Z")
	w.hit("acme", "api", 100)
	w.clock("2026-02-01T01:00:10Z")
	want := []string{"period 01-01..02-01 finalized 2100 due 2100: base 0 2000, usage 100 100"}
	w.says(id, want...)
	w.clock("2026-01-15T00:00:00Z")
	w.hit("acme", "api", 7) // of February: the counter has been there
	w.says(id, want...)
	w.clock("2026-02-20T00:00:00Z")
	w.hit("acme", "api", 3)
	w.says(id, want...)
	w.clock("2026-03-01T01:00:10Z")
	w.says(id, append(want, "period 02-01..03-01 finalized 2010 due 2010: base 0 2000, usage 10 10")...)
}

// What prices a period that has begun stays, also while a test clock that was set back does not show
// it: other terms count from the next period, which is not open yet.
func TestTermsWhileTheClockIsBack(t *testing.T) {
	for name, cut := range map[string]bool{"whole": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			w, id := begun(t)
			w.plan("ahead", 1000, `[{"meter":"api","model":"per_unit","unit_price":"0.05"}]`)
			w.plan("dear", 9000, `[{"meter":"api","model":"per_unit","unit_price":"7"}]`)
			write := func(plan string, now bool) {
				t.Helper()
				in := planstest.OnPlan(plan)
				in.TestClock, in.BillingAnchor = planstest.Ptr("clock"), "2026-01-01T00:00:00"
				if in.Change = plans.ChangeLimitsNow; now {
					in.Change = plans.ChangeNow
				}
				planstest.PutCustomer(t, w.store, "acme", in)
			}
			w.clock("2026-02-02T00:00:00Z")
			w.hit("acme", "api", 100)
			want := []string{"period 01-01..02-01 finalized 2000 due 2000: base 0 2000, usage 0 0"}
			if cut {
				w.clock("2026-02-15T00:00:00Z")
				write("ahead", true)
				want = append(want, "period 02-01..02-15 finalized 1100 due 1100: base 0 1000, usage 100 100",
					"period 02-15..03-01 finalized 4500 due 4500: base 0 4500, usage 0 0")
			} else {
				want = append(want, "period 02-01..03-01 finalized 2100 due 2100: base 0 2000, usage 100 100")
			}
			w.clock("2026-01-20T00:00:00Z")
			write("dear", false)
			w.clock("2026-04-01T03:00:00Z")
			w.says(id, append(want, "period 03-01..04-01 finalized 9000 due 9000: base 0 9000, usage 0 0")...)
		})
	}
}
