package closing

import (
	"fmt"
	"testing"
	"time"

	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// The clock was ahead, and closed a period early. A counter that was charged meanwhile comes back to
// the period's end and no further: nothing is booked in a closed period. While somebody is at the
// customer's billing the counter is left.
func TestBringBackStopsAtAClosedPeriod(t *testing.T) {
	clock := quotatest.NewClock(time.Now().UnixMicro())
	w := nodeBy(t, pgtest.NewDatabase(t), clock.Now)
	target, id, end := w.beforeItsEnd(clock)
	early := end - 600e6
	clock.Set(early)
	w.hit("acme", "api", 3)
	clock.Set(end + 3600e6)
	w.workOff() // it closes the period
	w.hit("acme", "api", 4)
	clock.Set(early)
	pgtest.Exec(t, w.url, fmt.Sprintf("DELETE FROM counters WHERE customer <> %d", id))

	a := &Ahead{Pool: w.store.Pool(), Catalog: w.catalog, Engine: w.engine, Now: clock.Now}
	bring := func(dry bool, want AheadReport) {
		t.Helper()
		if got, err := a.BringBack(t.Context(), dry); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	at := func(want int64) {
		t.Helper()
		if got := pgtest.Query[int64](t, w.url, "SELECT at FROM counters WHERE customer = $1", id); got != want {
			t.Errorf("the counter is %d µs after the period's end, want %d", got-end, want-end)
		}
	}
	ahead := end + 3600e6 - early
	bring(true, AheadReport{Ahead: 1, Furthest: ahead})
	tx, err := w.store.Pool().Begin(t.Context())
	w.check(err)
	_, err = tx.Exec(t.Context(), "SELECT FROM open_periods FOR UPDATE")
	w.check(err)
	bring(false, AheadReport{Left: 1})
	w.check(tx.Rollback(t.Context()))
	at(end + 3600e6)
	bring(false, AheadReport{Ahead: 1, Furthest: ahead, Brought: 1})
	at(end)
	bring(false, AheadReport{Ahead: 1, Furthest: end - early, Closed: 1})
	d, err := w.engine.Decide(t.Context(), target, 2)
	w.check(err)
	if !d.Allowed || d.At != end || d.Ahead != end-early {
		t.Errorf("a hit after it: %s", d.String())
	}
	if closed := pgtest.Query[int64](t, w.url, fmt.Sprintf("SELECT coalesce(sum(admitted), 0)::bigint FROM usage WHERE customer = %d AND hour < %d", id,
		end)); closed != 3 {
		t.Errorf("%d units are booked in the closed period, want 3", closed)
	}
}
