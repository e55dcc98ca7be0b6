package closing

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/invoices"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
)

// held holds back what is sent with a text in it, once, until it is opened.
type held struct {
	text            atomic.Pointer[string]
	reached, opened chan struct{}
}

type heldConn struct {
	net.Conn
	*held
}

func (c heldConn) Write(p []byte) (int, error) {
	if text := c.text.Load(); text != nil && bytes.Contains(p, []byte(*text)) && c.text.CompareAndSwap(text, nil) {
		close(c.reached)
		<-c.opened
	}
	return c.Conn.Write(p)
}

// heldEngine charges hits on the world's database by connections that h can hold back.
func (w *world) heldEngine(h *held) *quota.Engine {
	w.Helper()
	e, err := quota.NewEngine(quota.Options{
		Connect: (&quotatest.DB{URL: w.url}).ConnectBy(func(c net.Conn) net.Conn { return heldConn{c, h} }),
		Pool:    w.store.Pool(), Now: planstest.WallClock, Wall: time.Now, Stopwatch: planstest.Monotonic, Log: slog.New(slog.DiscardHandler),
		AlsoAdjusted: invoices.OpenAdjustments,
	})
	w.check(err)
	w.Cleanup(func() { w.check(e.Close(testkit.Context(w))) })
	return e
}

// The first hit on a meter was judged before its customer was archived, and its statement comes
// when the last period is billed. The meter got its price after the open period had begun, so
// archiving knew nothing of it. The hit is not charged, and its caller is told.
func TestALateFirstHitOfAnArchivedCustomer(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	planstest.Declare(t, w.store, "gb")
	w.plan("pro", 0, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "pro")
	w.customer("other", "pro")
	planstest.SetClock(t, w.store, "clock", "2026-01-10T00:00:00Z")
	w.plan("pro", 0, `[{"meter":"api","model":"per_unit","unit_price":"0.01"},{"meter":"gb","model":"per_unit","unit_price":"1"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-02-01T00:00:05Z") // January is over, and not closed yet

	gate := &held{reached: make(chan struct{}), opened: make(chan struct{})}
	late := w.heldEngine(gate)
	target := func(customer, meter string) *model.Target {
		t.Helper()
		found, err := w.catalog.Resolve(t.Context(), customer, meter, 0)
		w.check(err)
		return found
	}
	if d, err := late.Decide(t.Context(), target("other", "gb"), 1); err != nil || !d.Allowed {
		t.Fatal(d.String(), err) // its session is there now
	}
	text := "quotad_make"
	gate.text.Store(&text)
	told := make(chan error, 1)
	judged := target("acme", "gb")
	go func() {
		_, err := late.Decide(t.Context(), judged, 7)
		told <- err
	}()
	<-gate.reached
	w.check(w.store.ArchiveCustomer(t.Context(), "acme"))
	w.clock("2026-03-01T00:00:00Z")
	if n := planstest.Count(t, w.store, `count(*) FROM open_periods WHERE customer_id = $1 AND start_at IS NOT NULL`, id); n != 0 {
		t.Fatal("its last period is not closed")
	}
	close(gate.opened)
	var stale *model.StaleError
	if err := <-told; !errors.As(err, &stale) {
		t.Errorf("the late hit was told %v", err)
	}
	if n := planstest.Count(t, w.store, `coalesce(sum(units), 0)::bigint FROM counters WHERE customer = $1`, id); n != 0 {
		t.Errorf("%d units are charged behind the last invoice", n)
	}
}

// Hits hammer a customer while it is archived. What was admitted is what is billed.
func TestArchivedUnderLoadIsBilledWhole(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 0, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "pro")
	planstest.SetClock(t, w.store, "clock", "2026-01-20T10:30:00Z")
	target, err := w.catalog.Resolve(t.Context(), "acme", "api", 0)
	w.check(err)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				d, err := w.engine.Decide(t.Context(), target, 1)
				if err != nil {
					return
				}
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	testkit.Eventually(t, "hits", func() bool { return admitted.Load() >= 50 })
	w.check(w.store.ArchiveCustomer(t.Context(), "acme"))
	w.clock("2026-03-01T00:00:00Z")
	all.Wait()
	got := w.stored(id)
	if len(got) != 1 || got[0].Status != billing.StatusFinalized || got[0].Lines[0].Quantity != admitted.Load() {
		t.Fatalf("%d were admitted: %+v", admitted.Load(), got)
	}
}
