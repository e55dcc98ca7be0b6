package quota

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// delayed is a connection on which everything takes each longer, either way.
type delayed struct {
	net.Conn
	each  time.Duration
	asked atomic.Bool // something was sent since the last answer
}

func (d *delayed) Write(b []byte) (int, error) {
	time.Sleep(d.each)
	d.asked.Store(true)
	return d.Conn.Write(b)
}

func (d *delayed) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.asked.Swap(false) {
		time.Sleep(d.each)
	}
	return n, err
}

// hot is one customer whom callers on several nodes use up, unit by unit.
type hot struct {
	limit    int64
	callers  int      // of all nodes
	values   []string // of ip, in turn; none: the customer's own counter only
	admitted atomic.Int64
}

// useUp has the callers hit until nothing remains. Each hit must have its answer.
func (h *hot) useUp(t *testing.T, nodes ...*Engine) {
	t.Helper()
	limits := []*model.Limit{quotatest.Window(t, "all", h.limit, "1d")}
	if len(h.values) > 0 {
		limits = append(limits, quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "token_bucket", Limit: h.limit, Window: "1d", Per: "ip"}))
	}
	customer := quotatest.FreshCustomers(1)
	var target *model.Target
	var wg sync.WaitGroup
	for i := range h.callers {
		if i < len(nodes) { // each node has a target of its own
			target = model.NewTarget(1, customer, 1, limits, quotatest.Target(1, 1, 1).Periods, nil)
		}
		e, theirs := nodes[i%len(nodes)], target
		wg.Go(func() {
			for n := i; ; n++ {
				hit := theirs
				if len(h.values) > 0 {
					hit = quotatest.IP(theirs, h.values[n%len(h.values)])
				}
				ctx, cancel := context.WithTimeout(testkit.Context(t), testkit.Patience)
				d, err := e.Decide(ctx, hit, 1)
				cancel()
				if err != nil {
					t.Errorf("%s, %v", d.String(), err)
					return
				}
				if !d.Allowed {
					return
				}
				h.admitted.Add(1)
			}
		})
	}
	wg.Wait()
	h.check(t, nodes[0], target)
}

// check compares what was admitted with the limit, the counters and the usage.
func (h *hot) check(t *testing.T, e *Engine, target *model.Target) {
	t.Helper()
	ctx := testkit.Context(t)
	if got := h.admitted.Load(); got != h.limit {
		t.Errorf("%d hits admitted of a limit of %d", got, h.limit)
	}
	e.used(ctx, t, target, h.limit)
	var sum int64
	for _, value := range h.values {
		d, err := e.Look(ctx, quotatest.IP(target, value), 0)
		if err != nil {
			t.Fatal(err)
		}
		sum += d.View(1).Used
	}
	if len(h.values) > 0 && sum != h.limit {
		t.Errorf("%d used of all values, want %d", sum, h.limit)
	}
}

// TestHotCustomerFarAway: a hot customer of two nodes, each two milliseconds from the database,
// is exact, and is charged many hits at a time.
func TestHotCustomerFarAway(t *testing.T) {
	for name, values := range map[string][]string{"own counter": nil, "shared values": {"1", "2", "3"}} {
		t.Run(name, func(t *testing.T) {
			db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
			far := func(o *Options) {
				o.Connect = db.ConnectBy(func(conn net.Conn) net.Conn { return &delayed{Conn: conn, each: 2 * time.Millisecond} })
			}
			nodes := []*Engine{db.startEngine(t, clock, far), db.startEngine(t, clock, far)}
			for _, e := range nodes { // a node serves when it has its sessions
				if err := e.Connected(testkit.Context(t)); err != nil {
					t.Fatal(err)
				}
			}
			h := &hot{limit: int64(quotatest.Sized(1000, 3000, 30_000)), callers: 64, values: values}
			h.useUp(t, nodes...)
			reconciled(t, db)
			if n := quotatest.Deadlocks(t, db.URL); n > 0 {
				t.Errorf("%d deadlocks", n)
			}
			trips := nodes[0].Stats().Batches + nodes[1].Stats().Batches
			t.Logf("%d hits in %d round trips and transactions", h.limit, trips)
			if trips*leastTogether > h.limit {
				t.Errorf("%d hits took %d round trips and transactions: fewer than %d each", h.limit, trips, leastTogether)
			}
		})
	}
}

// leastTogether is how many of the 64 hits that wait at a time go together at least.
const leastTogether = 6

// TestHotCustomerOfSkippingNodes: two nodes that wait for no row charge one customer, exactly,
// and answer each hit.
func TestHotCustomerOfSkippingNodes(t *testing.T) {
	for name, values := range map[string][]string{"own counter": nil, "shared values": {"1", "2", "3"}} {
		t.Run(name, func(t *testing.T) {
			db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
			still := func(o *Options) { o.Stopwatch = func() time.Duration { return time.Hour } }
			nodes := []*Engine{db.startEngine(t, clock, still), db.startEngine(t, clock, still)}
			for _, e := range nodes {
				e.workers[0].SkipLocked() // for as long as the stopwatch stands
			}
			h := &hot{limit: int64(quotatest.Sized(1000, 3000, 30_000)), callers: 64, values: values}
			h.useUp(t, nodes...)
			reconciled(t, db)
			for i, e := range nodes {
				if s := e.Stats(); s.Swapped > 0 || !e.workers[0].SkipsLocked() || s.Queued > 0 {
					t.Errorf("node %d does not skip locked rows, or left hits: %+v", i, s)
				}
			}
		})
	}
}

// TestSkippingNodeBesideAHeldRow: while somebody holds a customer's row, a node that skips locked rows answers
// the hits of others, and answers those of that customer once the row is free.
func TestSkippingNodeBesideAHeldRow(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, func(o *Options) { o.Stopwatch = func() time.Duration { return time.Hour } })
	limit := quotatest.Window(t, "a", 1000, "1d")
	held, free := quotatest.Target(1, 1, 1, limit), quotatest.Target(2, 1, 1, limit)
	for _, target := range []*model.Target{held, free} {
		if d, err := e.Decide(ctx, target, 1); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	tx := db.HoldRow(ctx, t, 1, true)
	e.workers[0].SkipLocked()
	late := make(chan error, 1)
	go func() {
		d, err := e.Decide(ctx, held, 1)
		if err == nil && !d.Allowed {
			err = errors.New("refused")
		}
		late <- err
	}()
	for range 200 { // more than an operation is tried
		if d, err := e.Decide(ctx, free, 1); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	select {
	case err := <-late:
		t.Fatalf("a hit on the held row was answered: %v", err)
	default:
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Error(err)
	}
	e.used(ctx, t, held, 2)
	e.used(ctx, t, free, 201)
}
