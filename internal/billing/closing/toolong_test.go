package closing

import (
	"context"
	"fmt"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestACustomerThatTakesTooLong: the step of one customer takes longer than a transaction may. It is
// blocked, others are closed, and it is closed when its step is quick again.
func TestACustomerThatTakesTooLong(t *testing.T) {
	const customers = 8
	w, clock := newBilled(t, pgtest.NewDatabase(t), customers, 2)
	o := w.worker.options
	o.StepTimeout = 5 * time.Second // a busy machine closes one customer in less, unless it stalls
	w.worker = New(o)
	_, err := w.store.Pool().Exec(w.Context(), `
		INSERT INTO charges (customer_id, id, description, amount_minor, currency, at, payload)
		SELECT min(id), 'setup', 'Setup', 100, 'USD', $1, 1 FROM customers`, clock.At.Load())
	w.check(err)
	holder, err := w.store.Pool().Begin(w.Context())
	w.check(err)
	defer func() { _ = holder.Rollback(context.WithoutCancel(w.Context())) }()
	_, err = holder.Exec(w.Context(), `SELECT FROM charges FOR UPDATE`)
	w.check(err)
	turns := 0
	closed := func(want int) {
		t.Helper()
		testkit.Eventually(t, fmt.Sprint(want, " invoices"), func() bool {
			turns++
			err := w.worker.WorkOff(w.Context())
			n := pgtest.Query[int](t, w.url, `SELECT count(*) FROM invoices WHERE kind = $1`, billing.KindPeriod)
			if err != nil || n < want { // a stall took longer than a step may: those are tried again
				t.Logf("%d invoices, want %d: %v\n%s", n, want, err, w.log)
				clock.Set(clock.At.Load() + retryBlocked)
			}
			if n > want {
				t.Errorf("%d invoices, want %d", n, want)
			}
			return n >= want
		})
	}
	closed(customers - 1)
	key := pgtest.Query[string](t, w.url, `SELECT key FROM customers ORDER BY id LIMIT 1`)
	why := pgtest.Query[string](t, w.url, `SELECT max(blocked) FROM open_periods`)
	if n := w.log.Count("customer=" + key + " "); n < 1 || n > turns || why != "it takes too long, more than 5s: close: timeout: context deadline exceeded" {
		t.Errorf("blocked: %q\n%s", why, w.log)
	}
	w.check(holder.Rollback(w.Context()))
	clock.Set(clock.At.Load() + retryBlocked)
	closed(customers)
}
