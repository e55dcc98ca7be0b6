package closing

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// inQueue are the costs of the adjustments in a customer's queue.
const inQueue = `
	SELECT coalesce(array_agg(a.cost ORDER BY a.cost), '{}') FROM open_adjustments q
	LEFT JOIN adjustments a ON a.customer = q.customer AND a.meter = q.meter AND a.hour = q.hour AND a.key = q.key WHERE q.customer = $1`

// badCopies counts what invoices took and did not copy as it is.
const badCopies = `
	SELECT count(*) FROM line_adjustments l JOIN adjustments a ON a.customer = l.customer AND a.meter = l.meter AND a.hour = l.hour AND a.key = l.key
	WHERE (l.cost, l.at, l.reason) IS DISTINCT FROM (a.cost, a.at, a.reason)`

// queued fails unless adjustments of these costs are in a customer's queue, and all copies are right.
func (w *world) queued(when string, customer int64, want ...int64) {
	w.Helper()
	if got := pgtest.Query[[]int64](w, w.url, inQueue, customer); !slices.Equal(got, want) {
		w.Errorf("%s: the queue has adjustments of %v units, not %v", when, got, want)
	}
	if n := pgtest.Query[int](w, w.url, badCopies); n != 0 {
		w.Errorf("%s: %d copies are not as the adjustments are", when, n)
	}
}

// An adjustment is in the queue until an invoice takes it, and again when that is void. It is billed
// once, and lines show it as it was made.
func TestTheQueueFollowsInvoices(t *testing.T) {
	for _, reissue := range []bool{false, true} {
		w, id := begun(t)
		w.clock("2026-01-20T00:00:00Z")
		w.adjust("acme", "api", "2026-01-11T00:00:00Z", 5, "own")
		w.queued("in the open period", id, 5)
		w.clock("2026-02-01T00:00:10Z")
		w.queued("its invoice is a draft", id, 5)
		w.adjust("acme", "api", "2026-01-11T00:00:00Z", 6, "beside the draft")
		w.queued("another came", id, 5, 6)
		w.clock("2026-02-01T01:00:10Z")
		w.queued("its invoice is final", id)
		for _, sql := range []string{
			`UPDATE line_adjustments SET cost = 7`, `UPDATE line_adjustments SET at = at`, `UPDATE line_adjustments SET hour = 7`,
			`DELETE FROM line_adjustments`,
		} {
			if _, err := w.store.Pool().Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "lines cannot be changed") {
				t.Errorf("%s: %v", sql, err)
			}
		}
		w.adjust("acme", "api", "2026-01-12T00:00:00Z", 70, "late")
		w.adjust("acme", "api", "2026-02-01T00:00:00Z", 8, "february's own")
		w.queued("one is late", id, 8, 70)
		w.clock("2026-03-01T00:00:10Z")
		w.queued("the next draft took the late one", id, 8)
		w.clock("2026-03-01T01:00:10Z")
		w.queued("the next invoice is final", id)
		february := w.stored(id)[1]
		_, err := w.invoices.Void(t.Context(), february.ID, "a test", reissue)
		w.check(err)
		if reissue {
			w.queued("the reissue took the late one", id, 8)
		} else {
			w.queued("it is void", id, 8, 70)
		}
		w.clock("2026-04-01T01:00:10Z")
		want := []string{
			"period 01-01..02-01 finalized 2011 due 2011: base 0 2000, usage 11 11",
			"period 02-01..03-01 void 2078 due 2078: base 0 2000, usage 8 8, correction 70 70",
		}
		if reissue {
			w.queued("the reissue is final", id)
			want = append(want, "period 02-01..03-01 finalized 2078 due 2078: base 0 2000, usage 8 8, correction 70 70",
				"period 03-01..04-01 finalized 2000 due 2000: base 0 2000, usage 0 0")
		} else {
			w.queued("february is written off", id)
			want = append(want, "period 03-01..04-01 finalized 2070 due 2070: base 0 2000, usage 0 0, correction 70 70")
		}
		w.says(id, want...)
		last := w.stored(id)
		for _, i := range last {
			for n := range i.Lines {
				if l := &i.Lines[n]; l.Kind == billing.LineCorrection {
					u, err := w.invoices.LineUsage(t.Context(), i.ID, l.N, plans.Page{})
					w.check(err)
					if len(u.Adjustments) != 1 || u.Adjustments[0].Cost != 70 || u.Adjustments[0].Reason != "a test" ||
						u.Adjustments[0].At < planstest.Instant("2026-02-01T01:00:10Z") {
						t.Errorf("%+v", u)
					}
				}
			}
		}
	}
}

// What no invoice will ever take leaves the queue when a later period closes. All else stays.
func TestWhatNobodyTakesLeavesTheQueue(t *testing.T) {
	w, id := begun(t)
	planstest.Declare(t, w.store, "free")
	w.clock("2026-01-05T00:00:00Z")
	other := w.customer("other", "pro")
	free := func(at string, cost int64, name string) { // of a meter without a price
		w.exec(`WITH added AS (
			INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
			SELECT $1, $2, id, $3, $4, $5, 0, '' FROM meters WHERE key = 'free' RETURNING customer, hour, meter, key)
			INSERT INTO open_adjustments SELECT * FROM added`, model.Shard(id), id, planstest.Instant(at), model.NewID("adjustment", name).Key, cost)
	}
	free("2025-12-31T00:00:00Z", 1, "before billing")
	free("2026-01-10T00:00:00Z", 2, "no price")
	w.clock("2026-02-01T00:00:10Z")
	w.queued("the first period is closed: its start was set back until now", id, 1, 2)
	w.clock("2026-02-20T00:00:00Z")
	w.adjust("acme", "api", "2026-02-10T00:00:00Z", 40, "february's")
	free("2026-02-10T00:00:00Z", 3, "no price in the open period")
	w.clock("2026-03-01T00:00:10Z")
	w.queued("the second is closed: the first has no line of the meter", id, 3, 40)
	w.clock("2026-03-01T01:00:10Z")
	w.queued("the second is final", id, 3)
	_, err := w.invoices.Void(t.Context(), w.stored(id)[1].ID, "written off", false)
	w.check(err)
	w.queued("the second is void", id, 3, 40)
	w.adjust("acme", "api", "2026-01-12T00:00:00Z", 50, "late")
	// A restore of the data alone runs the triggers on what was taken.
	w.adjust("other", "api", "2026-02-12T00:00:00Z", 60, "taken")
	w.clock("2026-04-01T00:00:10Z")
	w.queued("written off", id)
	w.exec(`INSERT INTO open_adjustments SELECT customer, hour, meter, key FROM line_adjustments WHERE customer = $1`, other)
	w.queued("restored", other, 60)
	w.clock("2026-05-01T00:00:10Z")
	w.queued("it was taken before", other)
	w.clock("2026-05-01T01:00:10Z")
	w.says(other, "period 01-05..02-01 finalized 1742 due 1742: base 0 1742, usage 0 0", "period 02-01..03-01 finalized 2000 due 2000: base 0 2000, usage 0 0",
		"period 03-01..04-01 finalized 2060 due 2060: base 0 2000, usage 0 0, correction 60 60",
		"period 04-01..05-01 finalized 2000 due 2000: base 0 2000, usage 0 0")
}

// A draft that is held keeps what it will count, however many periods close meanwhile.
func TestTheQueueKeepsWhatADraftWillCount(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-01-20T00:00:00Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 5, "own")
	w.clock("2026-02-01T00:00:10Z")
	w.exec(`UPDATE invoices SET finalize_at = $1`, planstest.Instant("2026-04-10T00:00:00Z"))
	w.exec(`UPDATE open_periods SET due_at = end_at + $1`, closeDelay.Microseconds())
	w.clock("2026-04-01T01:00:10Z")
	w.queued("two more periods are closed", id, 5)
	w.clock("2026-04-10T00:00:00Z")
	w.queued("it is final", id)
	w.says(id, "period 01-01..02-01 finalized 2005 due 2005: base 0 2000, usage 5 5",
		"period 02-01..03-01 finalized 2000 due 2000: base 0 2000, usage 0 0", "period 03-01..04-01 finalized 2000 due 2000: base 0 2000, usage 0 0")
}

// A node drops the draft of an opening that took an adjustment. The next invoice takes it.
func TestADroppedOpeningGivesUpItsAdjustments(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	planstest.PutPlan(t, w.store, "ahead", plans.PlanInput{
		Name: "Ahead", Currency: "USD", Interval: "month", IntervalCount: 1, BasePriceMinor: 3100, BaseIn: plans.InAdvance,
		Prices: []plans.Price{{Meter: "api", Model: "per_unit", UnitPrice: planstest.Ptr("0.01")}},
	})
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "ahead")
	w.account("2026-02-01T00:00:00Z")
	w.clock("2026-02-15T00:00:00Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 70, "late")
	w.queued("it is late", id, 70)
	w.account("") // the chain begins before an extra invoice is drafted
	w.clock("2026-02-15T00:00:20Z")
	w.queued("the opening of the new chain took it", id)
	planstest.PutPlan(t, w.store, "other", plans.PlanInput{
		Name: "Other", Currency: "USD", Interval: "month", IntervalCount: 1,
		Prices: []plans.Price{{Meter: "api", Model: "per_unit", UnitPrice: planstest.Ptr("0.01")}},
	})
	in := planstest.OnPlan("other")
	in.TestClock, in.BillingAnchor, in.Change = planstest.Ptr("clock"), "2026-01-01T00:00:00", plans.ChangeNow
	planstest.SetClock(t, w.store, "clock", "2026-02-15T00:00:00Z") // set back: the cut is at the period's start
	planstest.PutCustomer(t, w.store, "acme", in)
	w.queued("the opening is dropped", id, 70)
	w.clock("2026-03-01T01:00:10Z")
	w.queued("the next invoice took it", id)
	if got := said(w.stored(id)); strings.Count(got, "correction 70 70") != 1 || w.unclaimed(id) != 0 {
		t.Error(got)
	}
}

// A correction of nothing has no line, so the corrected invoice may be reissued. Both take the
// adjustment then. While one of them has it, it is not in the queue.
func TestAnAdjustmentThatTwoInvoicesTook(t *testing.T) {
	for _, reissue := range []bool{false, true} {
		w := newWorld(t)
		planstest.Declare(t, w.store, "api")
		w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01","included":100}]`)
		planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
		id := w.customer("acme", "pro")
		w.clock("2026-02-01T01:00:10Z")
		w.adjust("acme", "api", "2026-01-12T00:00:00Z", 60, "late")
		w.clock("2026-03-01T01:00:10Z")
		all := w.stored(id)
		_, err := w.invoices.Void(t.Context(), all[0].ID, "a test", true)
		w.check(err)
		w.queued("february has it", id)
		w.clock("2026-03-02T01:00:10Z")
		_, err = w.invoices.Void(t.Context(), all[1].ID, "a test", reissue)
		w.check(err)
		w.queued("january's reissue has it", id)
	}
}

// However many adjustments an invoice takes, one statement takes them from the queue.
func TestManyAreTakenAtOnce(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-02-01T00:00:10Z")
	w.exec(`INSERT INTO open_adjustments SELECT customer_id, 0, 1, gen_random_uuid() FROM invoices, generate_series(1, 1001)`)
	plan := pgtest.Query[string](t, w.url, `EXPLAIN (ANALYZE, FORMAT JSON) INSERT INTO line_adjustments (invoice_id, customer, meter, hour, key, cost, at, reason)
		SELECT id, customer, meter, hour, key, 1, 0, '' FROM open_adjustments, invoices LIMIT 1000`)
	var read []struct {
		Triggers []struct {
			Name  string `json:"Trigger Name"`
			Calls int    `json:"Calls"`
		} `json:"Triggers"`
	}
	w.check(json.Unmarshal([]byte(plan), &read))
	calls := 0
	for _, trigger := range read[0].Triggers {
		if trigger.Name == "adjustment_taken" {
			calls += trigger.Calls
		}
	}
	if left := planstest.Count(t, w.store, "count(*) FROM open_adjustments WHERE customer = $1", id); calls != 1 || left != 1 {
		t.Errorf("%d calls left %d adjustments in the queue", calls, left)
	}
}
