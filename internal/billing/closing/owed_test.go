package closing

import (
	"testing"

	"quotad/internal/billing"
	"quotad/internal/quota/session"
	"quotad/internal/testkit/planstest"
)

// An adjustment comes while the last period is being closed: the closing has read what there is to bill, and
// has not committed. It waits for nobody, and it gets an extra invoice.
func TestAnAdjustmentBesideTheLastClosing(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-01-05T00:00:00Z")
	w.hit("acme", "api", 500)
	w.clock("2026-02-01T02:00:00Z")
	w.account("2026-02-10T00:00:00Z")
	planstest.SetClock(t, w.store, "clock", "2026-02-10T00:00:10Z")

	tx, err := w.store.Pool().Begin(t.Context())
	w.check(err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	w.check(session.ByKey(t.Context(), tx))
	c, err := w.accounts.Lock(t.Context(), tx, id)
	w.check(err)
	j := &job{c: c, at: planstest.Instant("2026-02-10T00:00:10Z")}
	w.check(w.worker.closePeriods(t.Context(), tx, []*job{j}))
	w.check(j.err)
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", -100, "beside")
	if answered, err := w.accounts.AnswerOwed(t.Context()); answered || err != nil {
		t.Errorf("a call of a customer that is being closed was answered: %t, %v", answered, err)
	}
	w.check(w.accounts.SetDue(t.Context(), tx, id))
	w.check(tx.Commit(t.Context()))

	w.workOff()
	if all := w.stored(id); len(all) != 2 {
		t.Fatalf("%d invoices", len(all))
	}
	w.clock("2026-02-10T00:00:20Z")
	all := w.stored(id)
	if len(all) != 3 {
		t.Fatalf("%d invoices", len(all))
	}
	extra := all[2]
	if end := planstest.Instant("2026-02-10T00:00:00Z"); !extra.Extra() || extra.PeriodStart != end || extra.PeriodEnd != end ||
		len(extra.Lines) != 1 || extra.Lines[0].Kind != billing.LineCorrection || extra.Lines[0].AmountMinor != -100 {
		t.Errorf("%+v", extra)
	}
	if n := planstest.Count(t, w.store, `count(*) FROM owed_calls`); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}

// Adjustments of customers whose billing goes on call nobody.
func TestOnlyEndsCall(t *testing.T) {
	w, _ := begun(t)
	w.clock("2026-02-01T02:00:00Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 100, "late")
	if n := planstest.Count(t, w.store, `count(*) FROM owed_calls`); n != 0 {
		t.Errorf("%d calls", n)
	}
	w.account("2026-03-15T00:00:00Z")
	w.adjust("acme", "api", "2026-01-11T00:00:00Z", 100, "later")
	if n := planstest.Count(t, w.store, `count(*) FROM owed_calls`); n != 1 {
		t.Errorf("%d calls", n)
	}
	w.workOff()
	if n := planstest.Count(t, w.store, `count(*) FROM owed_calls`); n != 0 {
		t.Errorf("%d calls are left", n)
	}
	w.clock("2026-03-01T00:00:10Z")
	if n := planstest.Count(t, w.store, `count(*) FROM open_periods WHERE owed_at IS NOT NULL`); n != 0 {
		t.Error("something is owed, and billing goes on")
	}
}
