package quota

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// valueRows is how many counters of values a customer has.
func (db *testDB) valueRows(t *testing.T, customer int64) (n int) {
	t.Helper()
	all, err := db.Counters(testkit.Context(t), customer)
	if err != nil {
		t.Fatal(err)
	}
	for key := range all {
		if key.Attribute != "" {
			n++
		}
	}
	return n
}

// TestOnlyAdmittedHitsMakeValues: a value has a counter once a hit on it was admitted, and
// not before: who asks with made-up values fills no table.
func TestOnlyAdmittedHitsMakeValues(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch), withoutMemory)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "token_bucket", Limit: 5, Window: "1d"},
		model.Spec{Algorithm: "fixed_window", Limit: 8, Window: "1d", Per: "-"})
	for i, c := range []struct {
		hit      model.Hit
		admitted bool
		rows     int
	}{
		{model.Hit{Target: quotatest.IP(target, "a"), Cost: 6}, false, 0},
		{model.Hit{Target: quotatest.IP(target, "a"), Cost: 6, ID: model.NewID("hit", "1")}, false, 0},
		{model.Hit{Target: quotatest.IP(target, "a"), Cost: 5, Look: true}, true, 0},
		{model.Hit{Target: quotatest.IP(target, "a"), Cost: 5}, true, 1},
		{model.Hit{Target: quotatest.IP(target, "b"), Cost: 4}, false, 1}, // the customer's own limit refuses
		{model.Hit{Target: quotatest.IP(target, "b"), Cost: 3, ID: model.NewID("hit", "2")}, true, 2},
		{model.Hit{Target: quotatest.IP(target, "c"), Cost: 1}, false, 2},
	} {
		r := e.DecideAll(ctx, []model.Hit{c.hit})[0]
		if r.Err != nil || r.Decision.Allowed != c.admitted {
			t.Errorf("hit %d: %s, %v", i, r.Decision.String(), r.Err)
		}
		if n := db.valueRows(t, quotatest.Customer(target)); n != c.rows {
			t.Errorf("hit %d: %d values have counters, want %d", i, n, c.rows)
		}
	}
	// All or none: one that would have fitted makes none either.
	_, together, err := e.DecideTogether(ctx, []model.Hit{{Target: quotatest.IP(target, "d"), Cost: 0}, {Target: quotatest.IP(target, "e"), Cost: 1}})
	if err != nil || together || db.valueRows(t, quotatest.Customer(target)) != 2 {
		t.Errorf("%v, %v, %d values", together, err, db.valueRows(t, quotatest.Customer(target)))
	}
}

// TestFirstHitsOfAValueAtOnce: two nodes make the first hits of a value at once, with an id or
// without. Each is charged.
func TestFirstHitsOfAValueAtOnce(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	nodes := []*Engine{db.startEngine(t, clock), db.startEngine(t, clock)}
	limits := []*model.Limit{
		quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "token_bucket", Limit: 1000, Window: "1d", Per: "ip"}),
		quotatest.Window(t, "all", 1_000_000, "1d"),
	}
	values := quotatest.Sized(50, 200, 2000)
	var customers []int64
	for i := range values {
		if i%2 == 0 { // every other customer is new too
			customers = append(customers, quotatest.FreshCustomers(1))
		} else {
			customers = append(customers, customers[0])
		}
	}
	newTarget := func(i int) *model.Target {
		return model.NewTarget(1, customers[i], 1, limits, quotatest.Target(1, 1, 1).Periods, nil)
	}
	own := make(map[int64]int64)
	for i := range values {
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for n, e := range nodes {
			hits := []model.Hit{{Target: quotatest.IP(newTarget(i), fmt.Sprint(i)), Cost: int64(1 + n)}}
			if i%3 == 0 {
				hits[0].ID = model.NewID("hit", fmt.Sprint(i, "/", n))
			}
			wg.Go(func() {
				<-begin
				if r := e.DecideAll(ctx, hits)[0]; r.Err != nil || !r.Decision.Allowed {
					t.Errorf("value %d: %s, %v", i, r.Decision.String(), r.Err)
				}
			})
		}
		close(begin)
		wg.Wait()
		own[customers[i]] += 3
		d, err := nodes[0].Look(ctx, quotatest.IP(newTarget(i), fmt.Sprint(i)), 0)
		if err != nil || d.View(0).Used != 3 || d.View(1).Used != own[customers[i]] {
			t.Fatalf("value %d: %s, %v; want 3 used, and %d of all", i, d.String(), err, own[customers[i]])
		}
	}
	reconciled(t, db)
}

// meddler does something else before a text is sent, once for each time that it is set.
type meddler struct {
	net.Conn
	text string
	do   *atomic.Pointer[func()]
}

func (m meddler) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(m.text)) {
		if do := m.do.Swap(nil); do != nil {
			(*do)()
		}
	}
	return m.Conn.Write(p)
}

// TestValueThatIsThereMeanwhile: a value's row appears, by somebody's hand, between the lock and
// the commit that makes it. The transaction fails as a whole, and is done again on that row.
func TestValueThatIsThereMeanwhile(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	var do atomic.Pointer[func()]
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) {
		o.Connect = db.ConnectBy(func(conn net.Conn) net.Conn { return meddler{conn, "COMMIT", &do} })
	})
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 1000, Window: "1d", Per: "-"},
		model.Spec{Algorithm: "fixed_window", Limit: 100, Window: "1d"})
	other := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 1000, Window: "1d", Per: "-"},
		model.Spec{Algorithm: "fixed_window", Limit: 100, Window: "1d"})
	old, fresh := quotatest.IP(target, "old"), quotatest.IP(target, "new")
	if r, _ := e.sendBatch(ctx, []model.Hit{{Target: old, Cost: 7}, {Target: quotatest.IP(other, "x"), Cost: 1}}); r[0].Err != nil || r[1].Err != nil {
		t.Fatal(r)
	}
	byHand := func() { // as old is: 7 units
		db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, attribute, at, hour, units, total, version, change, state)
			SELECT shard, customer, meter, $3, at, hour, units, total, version, change, state FROM counters
			WHERE customer = $1 AND attribute = $2`, quotatest.Customer(target), old.Counters[1].Key.Attribute, fresh.Counters[1].Key.Attribute)
	}
	do.Store(&byHand)
	before := e.Stats().Retried
	plain := e.handOver(fresh, 1, 2)
	ids := []locked.Once{
		e.worker(fresh).Submit("", &model.Hit{Target: fresh, Cost: 10, ID: model.NewID("hit", "one")}),
		e.worker(other).Submit("", &model.Hit{Target: quotatest.IP(other, "y"), Cost: 20, ID: model.NewID("hit", "two")}),
	}
	e.drain(ctx, t)
	if do.Load() != nil || e.Stats().Retried == before || e.workers[0].SkipsLocked() {
		t.Errorf("no transaction failed, or the worker skips locked rows for it: %+v", e.Stats())
	}
	for i, used := range []int64{8, 10} {
		h := plain[i]
		if <-h.Done; h.Result.Err != nil || h.Result.Decision.View(1).Used != used {
			t.Errorf("plain hit %d: %s, %v; want %d used", i, h.Result.Decision.String(), h.Result.Err, used)
		}
	}
	for i, used := range []int64{20, 20} {
		if r := ids[i].Wait(ctx, true); r.Err != nil || r.Decision.Replayed || r.Decision.View(1).Used != used {
			t.Errorf("hit %d with an id: %s, %v; want %d used", i, r.Decision.String(), r.Err, used)
		}
	}
	e.used(ctx, t, target, 7+13)
	reconciled(t, db)
}

// TestNewValuesAreBounded: a customer's hits make so many counters of values in a second and no
// more, in whatever way they come. Refused hits do not count, and neither do values that are there.
func TestNewValuesAreBounded(t *testing.T) {
	const most = 30
	db, ctx := newTestDB(t), testkit.Context(t)
	var watch atomic.Int64
	watch.Store(int64(time.Minute))
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch), withoutMemory, func(o *Options) {
		o.MaxNewValues, o.Stopwatch = most, func() time.Duration { return time.Duration(watch.Load()) }
	})
	newTarget := func() *model.Target {
		return quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 5, Window: "1d"},
			model.Spec{Algorithm: "fixed_window", Limit: 1000, Window: "1d", Per: "-"})
	}
	mine, other := newTarget(), newTarget()
	hit := func(target *model.Target, value string, cost int64) model.Hit {
		return model.Hit{Target: quotatest.IP(target, value), Cost: cost}
	}
	allowed := func(what string, results []queue.Result, want int) {
		t.Helper()
		n := 0
		for _, r := range results {
			switch many, over := errors.AsType[*locked.ManyValuesError](r.Err); {
			case r.Err == nil && r.Decision.Allowed:
				n++
			case r.Err != nil && (!over || many.Most != most || !errors.Is(r.Err, session.ErrBusy)):
				t.Errorf("%s: %v", what, r.Err)
			}
		}
		if n != want {
			t.Errorf("%s: %d are admitted, not %d", what, n, want)
		}
	}
	several := func(prefix string, n int, ids bool) (hits []model.Hit) {
		for i := range n {
			h := hit(mine, fmt.Sprint(prefix, i), 1)
			if ids {
				h.ID = model.NewID("hit", fmt.Sprint(prefix, i))
			}
			hits = append(hits, h)
		}
		return hits
	}
	together := func(hits []model.Hit) []queue.Result {
		_, all, err := e.DecideTogether(ctx, hits)
		return []queue.Result{{Decision: model.Decision{Allowed: all}, Err: err}}
	}
	allowed("refused", e.DecideAll(ctx, []model.Hit{hit(mine, "x", 6), hit(mine, "y", 6)}), 0)
	allowed("all or none, of which one does not fit", together([]model.Hit{hit(mine, "x", 1), hit(mine, "y", 6)}), 0)
	allowed("plain", e.DecideAll(ctx, several("plain-", 10, false)), 10)
	allowed("all or none", together(several("together-", 8, false)), 1)
	allowed("with ids", e.DecideAll(ctx, several("id-", 15, true)), 12)
	allowed("plain, too many", e.DecideAll(ctx, several("more-", 3, false)), 0)
	allowed("all or none, too many", together(several("more-", 2, false)), 0)
	_, err := e.Reserve(ctx, quotatest.IP(mine, "more-0"), 1, 60e6, model.NewID("reservation", "1"))
	allowed("a reservation", []queue.Result{{Err: err}}, 0)
	allowed("values that are there", e.DecideAll(ctx, append(several("plain-", 10, false), several("id-", 12, true)...)), 22)
	allowed("another customer", e.DecideAll(ctx, []model.Hit{hit(other, "a", 1), hit(other, "b", 1)}), 2)
	if n := db.valueRows(t, quotatest.Customer(mine)); n != most {
		t.Errorf("%d values have counters, want %d", n, most)
	}
	if n := e.Stats().ManyValues; n < 5 {
		t.Errorf("%d are counted", n)
	}
	watch.Add(int64(time.Second))
	allowed("the next second", e.DecideAll(ctx, several("more-", most+5, false)), most)
	reconciled(t, db)
}
