package quota

import (
	"errors"
	"slices"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

func perLimit(t testing.TB, name, per string, limit int64) *model.Limit {
	t.Helper()
	return quotatest.Compile(t, model.Spec{Name: name, Algorithm: "fixed_window", Limit: limit, Window: "1h", Per: per})
}

// TestTargetPerAttribute: limits per attribute get counters of their own, in key order,
// and are shown in the plan's order.
func TestTargetPerAttribute(t *testing.T) {
	limits := []*model.Limit{
		perLimit(t, "per-a", "a", 5), perLimit(t, "own", "", 9), perLimit(t, "per-a-b", "a-b", 6), perLimit(t, "again-a", "a", 7),
	}
	plain := quotatest.Target(1, 1, 3)
	target := model.NewTarget(3, 7, 8, limits, plain.Periods, nil)
	if len(target.Counters) != 1 || target.Counters[0].Key != (model.CounterKey{Customer: 7, Meter: 8, Attribute: ""}) || target.NumLimits() != 1 {
		t.Fatalf("the template has counters %+v", target.Counters)
	}
	for _, c := range []struct {
		attributes map[string]string
		keys       []string
	}{
		{nil, []string{"", "a-b=", "a="}},
		{map[string]string{"a": "1", "other": "x"}, []string{"", "a-b=", "a=1"}},
		{map[string]string{"a": "", "a-b": "="}, []string{"", "a-b==", "a="}},
	} {
		own := target.For(c.attributes)
		var keys []string
		for _, counter := range own.Counters {
			keys = append(keys, counter.Key.Attribute)
		}
		if !slices.Equal(keys, c.keys) || !slices.IsSortedFunc(own.Counters, func(a, b model.Counter) int { return model.CompareKeys(a.Key, b.Key) }) {
			t.Errorf("%v: counters %q, want %q", c.attributes, keys, c.keys)
		}
		for i, l := range limits {
			if own.Limit(i) != l {
				t.Errorf("%v: limit %d is %s, want %s", c.attributes, i, own.Limit(i).Name, l.Name)
			}
		}
	}
	if one, two := target.For(map[string]string{"a": "1"}), target.For(map[string]string{"a": "1"}); one.Group() != two.Group() {
		t.Error("hits of one value are two groups")
	}
	if one, two := target.For(map[string]string{"a": "1"}), target.For(map[string]string{"a": "2"}); one.Group() == two.Group() {
		t.Error("hits of two values are one group")
	}
	if all := model.NewTarget(3, 7, 8, limits[1:2], plain.Periods, nil); all.For(map[string]string{"a": "1"}) != all {
		t.Error("a target without limits per attribute is made again for each hit")
	}
}

// TestPerAttributeDecides: each value has its own bucket, the customer's own limits hold
// over all, and usage is booked once.
func TestPerAttributeDecides(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	customer := quotatest.FreshCustomers(1)
	limits := []*model.Limit{perLimit(t, "ip", "ip", 2), perLimit(t, "all", "", 5)}
	target := model.NewTarget(1, customer, 1, limits, quotatest.Target(1, 1, 1).Periods, nil)
	hit := func(ip string, want bool, ipLeft, left int64) {
		t.Helper()
		d, err := e.Decide(ctx, target.For(map[string]string{"ip": ip}), 1)
		if err != nil || d.Allowed != want || d.View(0).Remaining != ipLeft || d.View(1).Remaining != left {
			t.Fatalf("%s: %s, %v; want %v with %d and %d left", ip, d.String(), err, want, ipLeft, left)
		}
	}
	hit("1", true, 1, 4)
	hit("1", true, 0, 3)
	hit("1", false, 0, 3)
	hit("1", false, 0, 3) // from memory
	hit("2", true, 1, 2)
	hit("", true, 1, 1)
	hit("3", true, 1, 0)
	hit("4", false, 2, 0)
	rows, err := db.Counters(ctx, customer)
	if err != nil {
		t.Fatal(err)
	}
	if _, made := rows[model.CounterKey{Customer: customer, Meter: 1, Attribute: "ip=4"}]; made || len(rows) != 5 {
		t.Errorf("%d rows: a refused hit made one for its value: %v", len(rows), rows)
	}
	if own := rows[model.CounterKey{Customer: customer, Meter: 1, Attribute: ""}]; own.Units != 5 || own.Total != 5 {
		t.Errorf("booked %+v", own)
	}
}

// TestManyValuesAtOnce: hits of one customer with many values are decided together, and other
// customers' do not wait for them.
func TestManyValuesAtOnce(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	hand := db.handEngine(t, clock)
	customer, n := quotatest.FreshCustomers(2), 100
	periods := quotatest.Target(1, 1, 1).Periods
	target := model.NewTarget(1, customer, 1, []*model.Limit{perLimit(t, "ip", "ip", 1), perLimit(t, "all", "", int64(n-1))}, periods, nil)
	other := quotatest.Target(customer+1, 1, 1, quotatest.Window(t, "w", 10, "1h"))
	var hits []model.Hit
	for i := range n {
		hits = append(hits, model.Hit{Target: target.For(map[string]string{"ip": string(rune('a' + i))}), Cost: 1})
	}
	hits = append(hits, model.Hit{Target: other, Cost: 1})
	results, batches := hand.sendBatch(ctx, hits)
	admitted := 0
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("hit %d: %v", i, r.Err)
		}
		if r.Decision.Allowed {
			admitted++
		}
	}
	// One of the lane for the other customer, whose row it makes; one of the worker, which finds
	// the own row missing, and one that charges.
	if admitted != n || batches > 4 {
		t.Errorf("%d of %d admitted in %d batches", admitted, n+1, batches)
	}
}

// TestTooManyValuesAtOnce: hits that wait for the worker are bounded, and what is beyond it is
// told so.
func TestTooManyValuesAtOnce(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	hand := db.handEngine(t, clock)
	hand.options.MaxQueue, hand.node.MaxQueue = 40, 40
	target := model.NewTarget(1, quotatest.FreshCustomers(1), 1, []*model.Limit{perLimit(t, "ip", "ip", 1)}, quotatest.Target(1, 1, 1).Periods, nil)
	var hits []model.Hit
	for i := range 100 {
		hits = append(hits, model.Hit{Target: target.For(map[string]string{"ip": string(rune('a' + i))}), Cost: 1})
	}
	results, _ := hand.sendBatch(ctx, hits)
	busy := 0
	for i, r := range results {
		if errors.Is(r.Err, session.ErrBusy) {
			busy++
		} else if r.Err != nil || !r.Decision.Allowed {
			t.Errorf("hit %d: %s, %v", i, r.Decision.String(), r.Err)
		}
	}
	if busy != 80 {
		t.Errorf("%d hits were told that too many wait, want 80", busy)
	}
}
