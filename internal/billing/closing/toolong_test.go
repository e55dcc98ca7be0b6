package closing

import (
	"context"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/testkit/pgtest"
)

// TestACustomerThatTakesTooLong: the step of one customer takes longer than a transaction may. It is
// blocked, others are closed, and it is closed when its step is quick again.
func TestACustomerThatTakesTooLong(t *testing.T) {
	const customers = 8
	w, clock := newBilled(t, pgtest.NewDatabase(t), customers, 2)
	w.worker.stepTimeout = time.Second // a busy machine closes one customer in less
	_, err := w.store.Pool().Exec(w.Context(), `
		INSERT INTO charges (customer_id, id, description, amount_minor, currency, at, payload)
		SELECT min(id), 'setup', 'Setup', 100, 'USD', $1, 1 FROM customers`, clock.At.Load())
	w.check(err)
	holder, err := w.store.Pool().Begin(w.Context())
	w.check(err)
	defer func() { _ = holder.Rollback(context.WithoutCancel(w.Context())) }()
	_, err = holder.Exec(w.Context(), `SELECT FROM charges FOR UPDATE`)
	w.check(err)
	closed := func(want int) {
		t.Helper()
		w.check(w.worker.WorkOff(w.Context()))
		if n := pgtest.Query[int](t, w.url, `SELECT count(*) FROM invoices WHERE kind = $1`, billing.KindPeriod); n != want {
			t.Errorf("%d invoices, want %d\n%s", n, want, w.log)
		}
	}
	closed(customers - 1)
	key := pgtest.Query[string](t, w.url, `SELECT key FROM customers ORDER BY id LIMIT 1`)
	why := pgtest.Query[string](t, w.url, `SELECT max(blocked) FROM open_periods`)
	if w.log.Count("customer="+key+" ") != 1 || why != "it takes too long, more than 1s: close: timeout: context deadline exceeded" {
		t.Errorf("blocked: %q\n%s", why, w.log)
	}
	w.check(holder.Rollback(w.Context()))
	clock.Set(clock.At.Load() + retryBlocked)
	closed(customers)
}
