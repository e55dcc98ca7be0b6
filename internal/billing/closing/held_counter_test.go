package closing

import (
	"context"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// longestOpen is for how long any transaction of the node's pool has been open, ms.
const longestOpen = `
	SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 * 1000 FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND query LIKE '%open_periods%'`

// TestAHeldCounter: somebody holds the counter of a customer that is due. Others are closed
// meanwhile, and it is closed when it is free. No transaction of closing waits for it for as long
// as it is held.
func TestAHeldCounter(t *testing.T) {
	const customers = 120
	w, clock := newBilled(t, pgtest.NewDatabase(t), customers, 2)
	w.worker.fenceTime = fenceTime // as it is where nobody sets it
	holder, err := w.store.Pool().Begin(w.Context())
	w.check(err)
	defer func() { _ = holder.Rollback(context.WithoutCancel(w.Context())) }()
	_, err = holder.Exec(w.Context(), `SELECT FROM counters WHERE customer = (SELECT min(id) FROM customers) FOR UPDATE`)
	w.check(err)
	closed := func(n int) func() bool {
		return func() bool {
			// Without the clock: on a slow machine others are busy often, and would be blocked in the end.
			pgtest.Exec(t, w.url, `UPDATE open_periods SET retry_at = 0 WHERE busy_since IS NOT NULL AND blocked IS NULL`)
			w.check(w.worker.WorkOff(w.Context()))
			return pgtest.Query[int](t, w.url, `SELECT count(*) FROM periods`) == n
		}
	}
	watching, stop := context.WithCancel(w.Context())
	longest := make(chan float64)
	go func() {
		most := 0.
		for watching.Err() == nil {
			if open, err := pgtest.TryQuery[float64](watching, w.url, longestOpen); err == nil {
				most = max(most, open)
			}
			time.Sleep(10 * time.Millisecond)
		}
		longest <- most
	}()
	testkit.Eventually(t, "the others are closed", closed(customers-1))
	stop()
	// No turn waited for the counter: it is held still. How long one took is the machine's time, too.
	testkit.AtMost(t, "a transaction", time.Duration(<-longest*float64(time.Millisecond)), 3*time.Second)
	if n := pgtest.Query[int](t, w.url, `SELECT count(*) FROM open_periods WHERE blocked IS NOT NULL`); n != 0 {
		t.Errorf("%d customers are blocked", n)
	}
	clock.Set(clock.At.Load() + busyMost)
	closed(0)()
	w.check(w.worker.watch(w.Context()))
	key := pgtest.Query[string](t, w.url, `SELECT key FROM customers ORDER BY id LIMIT 1`)
	if n, _ := w.worker.Standing(); n != 1 || w.log.Count("customer="+key+" ") == 0 {
		t.Errorf("after a minute %d customers are blocked", n)
	}
	if why := pgtest.Query[string](t, w.url,
		`SELECT blocked FROM open_periods WHERE customer_id = (SELECT min(id) FROM customers)`); !strings.HasPrefix(why, "others keep its rows busy since 20") {
		t.Errorf("it is blocked: %s", why)
	}
	w.check(holder.Rollback(w.Context()))
	clock.Set(clock.At.Load() + retryBlocked)
	testkit.Eventually(t, "all are closed", closed(customers))
	if n := pgtest.Query[int](t, w.url, `SELECT count(*) FROM open_periods WHERE blocked IS NOT NULL OR busy_since IS NOT NULL`); n != 0 {
		t.Errorf("%d customers are blocked still", n)
	}
}
