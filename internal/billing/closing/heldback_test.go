package closing

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/quota"
	locked "quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
)

// TestChargesBesideAClose: a charging statement was judged before a period's end, and reaches
// the server when another node has closed the period and written its draft, or has finalized it.
// Its units are billed once, by the next invoice, or not at all when nobody waits for the answer.
// The caller is told which.
func TestChargesBesideAClose(t *testing.T) {
	for name, late := range quotatest.LateCharges() {
		for until, final := range map[string]bool{"it is drafted": false, "it is finalized": true} {
			t.Run(name+" until "+until, func(t *testing.T) { chargeBesideAClose(t, late, final) })
		}
	}
}

func chargeBesideAClose(t *testing.T, late quotatest.Late, final bool) {
	const cost = 5
	url, gate := pgtest.NewDatabase(t), quotatest.NewGate()
	clock := quotatest.NewClock(time.Now().UnixMicro())
	here := nodeBy(t, url, clock.Now, func(o *quota.Options) { o.Connect = (&quotatest.DB{URL: url}).ConnectBy(gate.Wrap) })
	there := nodeBy(t, url, clock.Now)
	target, id, end := here.beforeItsEnd(clock)
	var open locked.Reservation
	if late.How == quotatest.Commit {
		var err error
		open, err = here.engine.Reserve(here.Context(), target, cost, 3600e6, model.NewID("reservation", "r"))
		here.check(err)
	}
	booked := int64(0)
	if late.Warm {
		booked = 3
		here.hit("acme", "api", booked)
	}
	held := gate.HoldBack(t, late.Text, func(ctx context.Context) (model.Decision, error) {
		switch late.How {
		case quotatest.Once:
			return here.once(ctx, target, cost)
		case quotatest.Commit:
			s, err := here.engine.Commit(ctx, target, open.ID, cost)
			return s.Decision, err
		}
		return here.engine.Decide(ctx, target, cost)
	})
	if late.Gone {
		held.GiveUp()
	}
	clock.Set(end)
	there.workUntil(clock, id, 1, final)
	there.billed(id, booked)
	gate.Open()
	next := int64(1)
	if !late.Gone {
		next += cost
		held.AdmittedFrom(end)
	}
	here.hit("acme", "api", 1) // it comes after the other
	there.billed(id, booked)
	clock.Set(pgtest.Query[int64](t, url, `SELECT end_at FROM open_periods WHERE customer_id = $1`, id))
	there.workUntil(clock, id, 2, true)
	there.billed(id, booked, next)
}

// once charges a hit with an id.
func (w *world) once(ctx context.Context, target *model.Target, cost int64) (model.Decision, error) {
	r := w.engine.DecideAll(ctx, []model.Hit{{Target: target, Cost: cost, ID: model.NewID("hit", "held")}})[0]
	return r.Decision, r.Err
}

// beforeItsEnd makes customers in real time, and sets the clock to one microsecond before the end
// of acme's period. All sessions of the node are there then.
func (w *world) beforeItsEnd(clock *quotatest.Clock) (target *model.Target, id, end int64) {
	w.Helper()
	planstest.Declare(w, w.store, "api")
	in := planstest.Hourly(1000)
	w.check(json.Unmarshal([]byte(`[{"meter":"api","model":"per_unit","unit_price":"1"}]`), &in.Prices))
	planstest.PutPlan(w, w.store, "pro", in)
	for _, key := range []string{"other", "acme"} {
		id = planstest.PutCustomer(w, w.store, key, planstest.OnPlan("pro")).ID
	}
	end = pgtest.Query[int64](w, w.url, `SELECT end_at FROM open_periods WHERE customer_id = $1`, id)
	clock.Set(end - 1)
	w.hit("other", "api", 1)
	other, err := w.catalog.Resolve(w.Context(), "other", "api", 0)
	w.check(err)
	_, err = w.once(w.Context(), other, 1)
	w.check(err)
	target, err = w.catalog.Resolve(w.Context(), "acme", "api", 0)
	w.check(err)
	return target, id, end
}

// workUntil works off what is due, and moves the clock on, until the n-th invoice of a customer is
// there, or final. Whoever holds a row is waited for.
func (w *world) workUntil(clock *quotatest.Clock, customer int64, n int, final bool) {
	w.Helper()
	testkit.Eventually(w, "the period is closed", func() bool {
		clock.Set(clock.At.Load() + 10e6)
		w.check(w.worker.WorkOff(w.Context()))
		all := w.stored(customer)
		if len(all) == n && final {
			clock.Set(all[n-1].FinalizeAt)
			w.check(w.worker.WorkOff(w.Context()))
			all = w.stored(customer)
		}
		return len(all) == n && (all[n-1].Status != billing.StatusDraft) == final
	})
}

// billed compares the quantities of a customer's invoices with units.
func (w *world) billed(customer int64, units ...int64) {
	w.Helper()
	all := w.stored(customer)
	if len(all) != len(units) {
		w.Errorf("%d invoices, want %d", len(all), len(units))
		return
	}
	for n, i := range all {
		if i.Lines[0].Kind != billing.LineUsage || i.Lines[0].Quantity != units[n] {
			w.Errorf("invoice %d: %+v, want %d units", n, i.Lines[0], units[n])
		}
	}
}
