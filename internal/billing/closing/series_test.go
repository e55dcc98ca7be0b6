package closing

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
)

// Customers on test clocks are numbered in a series of their own. Nodes finalize in both at once,
// and neither has a gap.
func TestSeriesOfTestClocks(t *testing.T) {
	const each = 12
	url := pgtest.NewDatabase(t)
	clock := quotatest.NewClock(time.Now().UnixMicro())
	one, two := nodeBy(t, url, clock.Now), nodeBy(t, url, clock.Now)
	planstest.Declare(t, one.store, "api")
	one.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	planstest.SetClock(t, one.store, "clock", "2026-01-01T00:00:00Z")
	_, _, err := one.accounts.PutSeller(t.Context(), billing.Seller{Key: "default", Name: "Us", Prefix: "P-"}, planstest.AnyVersion)
	one.check(err)
	var test, live []int64
	for n := range each {
		test = append(test, one.customer(fmt.Sprintf("test-%d", n), "pro"))
		live = append(live, planstest.PutCustomer(t, one.store, fmt.Sprintf("live-%d", n), planstest.OnPlan("pro")).ID)
	}
	clock.Set(pgtest.Query[int64](t, url, `SELECT max(end_at) FROM open_periods WHERE clock_id IS NULL`) + 10e6)
	planstest.SetClock(t, one.store, "clock", "2026-02-01T00:00:10Z")
	pgtest.Eventually(t, "all are drafted", func() bool {
		one.check(one.worker.WorkOff(t.Context()))
		return planstest.Count(t, one.store, `count(*) FROM invoices WHERE status = 'draft'`) == 2*each
	})
	ended := make(chan error, 2*each)
	for n := range each {
		for m, id := range []int64{test[n], live[n]} {
			on := []*world{one, two}[(n+m)%2]
			draft := one.stored(id)[0].ID
			go func() {
				_, err := on.invoices.Finalize(t.Context(), draft)
				ended <- err
			}()
		}
	}
	for range 2 * each {
		one.check(<-ended)
	}
	for prefix, ids := range map[string][]int64{"TEST-P-": test, "P-": live} {
		var got, want []string
		for n, id := range ids {
			got, want = append(got, one.numbered(id)...), append(want, fmt.Sprintf("%s%d", prefix, n+1))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// A note has its customer's series.
	invoice := one.stored(test[0])[0].ID
	note, _, err := two.invoices.CreditNote(t.Context(), invoice, assembly.NoteRequest{
		Lines: []assembly.NoteLine{{N: 1, AmountMinor: 10}}, Reason: "an outage", To: assembly.Outside,
	}, "note", 1)
	if err != nil || note.Number != fmt.Sprintf("TEST-P-%d", each+1) {
		t.Errorf("the note: %+v, %v", note, err)
	}
	for _, f := range []struct {
		invoices.Filter
		want int
	}{
		{invoices.Filter{}, each},
		{invoices.Filter{TestClock: "clock"}, each + 1},
		{invoices.Filter{TestClock: invoices.AnyClock}, 2*each + 1},
		{invoices.Filter{Customer: "test-0"}, 0},
		{invoices.Filter{Customer: "test-0", TestClock: invoices.AnyClock}, 2},
		{invoices.Filter{Customer: "live-0", TestClock: "clock"}, 0},
	} {
		list, err := one.invoices.Invoices(t.Context(), f.Filter, plans.Page{})
		if err != nil || len(list.Items) != f.want {
			t.Errorf("%+v: %v, %v", f, list, err)
		}
	}
	if _, err := one.invoices.Invoices(t.Context(), invoices.Filter{TestClock: "nothing"}, plans.Page{}); !errors.Is(err, plans.ErrUnknownClock) {
		t.Errorf("an unknown clock: %v", err)
	}
}

// A prefix that begins as the numbers of test clocks do could give one of these again.
func TestPrefixesOfTestClocksAreRefused(t *testing.T) {
	w := newWorld(t)
	for prefix, want := range map[string]bool{"TEST-": false, "TEST-A": false, "TEST": true, "test-": true, "A-TEST-": true} {
		_, _, err := w.accounts.PutSeller(t.Context(), billing.Seller{Key: "us", Name: "Us", Prefix: prefix}, plans.Precondition{})
		if (err == nil) != want {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	// Such a prefix was given live numbers once. Without its beginning it is that of the tests.
	live, clock := newBilled(t, pgtest.NewDatabase(t), 1, 1)
	pgtest.Exec(t, live.url, `UPDATE sellers SET prefix = 'TEST-A'`)
	pgtest.Eventually(t, "a number is given", func() bool {
		clock.Set(clock.At.Load() + 3600e6)
		live.check(live.worker.WorkOff(t.Context()))
		return planstest.Count(t, live.store, `count(*) FROM invoices WHERE number IS NOT NULL`) == 1
	})
	for prefix, want := range map[string]bool{"A": false, "B": true} {
		_, _, err := live.accounts.PutSeller(t.Context(), billing.Seller{Key: "default", Name: "Us", Prefix: prefix}, plans.Precondition{})
		if (err == nil) != want {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}
