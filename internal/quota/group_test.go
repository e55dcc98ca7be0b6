package quota

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/postgres/pgtest"
)

func drawKey(rt *rapid.T) CounterKey {
	return CounterKey{
		Customer:  rapid.Int64Range(1, 4).Draw(rt, "customer"),
		Meter:     rapid.Int32Range(1, 2).Draw(rt, "meter"),
		Attribute: rapid.SampledFrom([]string{"", "", "ip=1", "ip=2", "ip=10", "IP=1", "ip=ä", "ip=_", "ip=a b"}).Draw(rt, "attribute"),
	}
}

// TestGather: a group a target, in order of arrival, and so its hits.
func TestGather(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var targets, order []*Target
		for range rapid.IntRange(1, 6).Draw(rt, "targets") {
			target := testTarget(1, 1, 1)
			target.Counters[0].Key = drawKey(rt)
			targets = append(targets, target)
		}
		var hits []*hit
		want := make(map[*Target][]*hit)
		for range rapid.IntRange(1, 20).Draw(rt, "hits") {
			h := &hit{target: rapid.SampledFrom(targets).Draw(rt, "target"), cost: 1}
			if want[h.target] == nil {
				order = append(order, h.target)
			}
			hits, want[h.target] = append(hits, h), append(want[h.target], h)
		}
		groups := new(gathering).gather(hits, 100)
		if len(groups) != len(order) {
			rt.Fatalf("%d groups of %d targets", len(groups), len(order))
		}
		for i, g := range groups {
			if g.target != order[i] || g.now != 100 || !slices.Equal(g.hits, want[g.target]) {
				rt.Fatalf("group %d: %+v", i, g)
			}
		}
	})
}

// drawLimits draws limits of all algorithms and modes, small enough to be reached.
func drawLimits(rt *rapid.T, most int) (limits []*Limit) {
	for i := range rapid.IntRange(0, most).Draw(rt, "limits") {
		s := Spec{
			Name: fmt.Sprint(i), Limit: rapid.Int64Range(1, 30).Draw(rt, "limit"), Window: "1m",
			Algorithm: rapid.SampledFrom([]string{"fixed_window", "sliding_window", "sliding_log", "token_bucket", "allocation"}).Draw(rt, "algorithm"),
			Mode:      rapid.SampledFrom(modeNames[:]).Draw(rt, "mode"),
		}
		if s.Algorithm == "allocation" {
			s.Window = ""
		}
		l, bad := Compile(s)
		if bad != nil {
			rt.Fatal(bad)
		}
		limits = append(limits, l)
	}
	return limits
}

// TestGroupsAreDecidedOneByOne: what a group's hits are told, and what they leave in the rows,
// is what each of them alone would be told and leave, one after the other.
func TestGroupsAreDecidedOneByOne(t *testing.T) {
	admitted, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		target := testTarget(1, 1, 1, drawLimits(rt, 4)...)
		if rapid.Bool().Draw(rt, "per") {
			target = withCounter(target, "ip=1", drawLimits(rt, 3)...)
		}
		rows, want := make([]row, len(target.Counters)), make([]row, len(target.Counters))
		now := testEpoch
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			now += rapid.Int64Range(0, 70e6).Draw(rt, "later")
			g := hitGroup{target: target}
			for range rapid.IntRange(1, 12).Draw(rt, "hits") {
				g.hits = append(g.hits, &hit{target: target, cost: rapid.Int64Range(1, 12).Draw(rt, "cost")})
			}
			g.decide(rows, now, nil)
			var cost int64
			some := 0
			for i, h := range g.hits {
				var d Decision
				if d, want = decideOn(target, want, now, h.cost); d.Allowed {
					some, cost = some+1, cost+h.cost
				}
				if err := sameDecision(&h.result.Decision, &d); err != nil {
					rt.Fatalf("hit %d: %v", i, err)
				}
				for v := range target.NumLimits() {
					if got, want := h.result.Decision.View(v), d.View(v); got != want {
						rt.Fatalf("hit %d, limit %d: %+v, want %+v", i, v, got, want)
					}
				}
			}
			if g.admitted != some || g.cost != cost || g.refused != (some < len(g.hits)) {
				rt.Fatalf("%d hits of cost %d admitted, refused %v; want %d of %d", g.admitted, g.cost, g.refused, some, cost)
			}
			for i := range rows {
				if !slices.Equal(rows[i].state, want[i].state) || rows[i].at != want[i].at || rows[i].version != want[i].version {
					rt.Fatalf("row %d: %+v, want %+v", i, rows[i], want[i])
				}
			}
			admitted, refused = admitted+some, refused+len(g.hits)-some
		}
	})
	if admitted == 0 || refused == 0 {
		t.Errorf("%d hits admitted, %d refused", admitted, refused)
	}
}

// The costs of the largest group of all stay far inside 64 bits.
func TestLargestGroup(t *testing.T) {
	g := hitGroup{target: testTarget(1, 1, 1)}
	for range maxBatch {
		g.hits = append(g.hits, &hit{target: g.target, cost: MaxNumber})
	}
	if g.decide(make([]row, 1), testEpoch, nil); g.admitted != maxBatch || g.cost != maxBatch*MaxNumber {
		t.Errorf("%d hits of cost %d", g.admitted, g.cost)
	}
}

// TestOrderIsThePrimaryKeys: counters are locked in the order of the table's own index.
func TestOrderIsThePrimaryKeys(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	var keys []CounterKey
	for c := range int64(300) {
		for _, attribute := range []string{"", "ip=1", "ip=10", "ip=2", "ip=A", "ip=a", "ip=_", "ip=ä", "ip=z", "ip=€", "ip= ", "Ip", "ip"} {
			keys = append(keys, CounterKey{c*c*c - 1000, int32(c%3) - 1, attribute})
		}
	}
	var columns keyColumns
	for _, k := range keys {
		columns.add(k)
	}
	execSQL(ctx, t, db, insertSQL, columns.shard, columns.customer, columns.meter, columns.attribute)
	rows, err := db.pool.Query(ctx, "SELECT customer, meter, attribute FROM counters ORDER BY shard, customer, meter, attribute")
	if err != nil {
		t.Fatal(err)
	}
	var stored []CounterKey
	for rows.Next() {
		var k CounterKey
		if err := rows.Scan(&k.Customer, &k.Meter, &k.Attribute); err != nil {
			t.Fatal(err)
		}
		stored = append(stored, k)
	}
	slices.SortFunc(keys, compareKeys)
	if rows.Err() != nil || !slices.Equal(keys, stored) {
		t.Errorf("compareKeys is not the primary key's order (%v)", rows.Err())
	}
}

// TestRunningHour: the hour holds its instant, also where a period cuts it and when the
// clock goes back, and is remembered rightly.
func TestRunningHour(t *testing.T) {
	target := testTarget(1, 1, 1)
	cut := testEpoch - 86400e6 + 17*60e6 // 2026-02-28T00:17, a period's start
	for _, c := range []struct{ at, start, end int64 }{
		{testEpoch, testEpoch, testEpoch + 3600e6},
		{testEpoch + 3600e6 - 1, testEpoch, testEpoch + 3600e6},
		{testEpoch + 3600e6, testEpoch + 3600e6, testEpoch + 7200e6},
		{testEpoch - 1, testEpoch - 3600e6, testEpoch},
		{cut - 1, cut - 17*60e6, cut},
		{cut, cut, cut + 43*60e6},
		{cut - 1, cut - 17*60e6, cut},
	} {
		if start, end := target.runningHour(c.at); start != c.start || end != c.end {
			t.Errorf("%d: [%d, %d), want [%d, %d)", c.at, start, end, c.start, c.end)
		}
	}
}

// What is used again for the next batch keeps nothing of the last one alive.
func TestGatheringLetsGo(t *testing.T) {
	var a gathering
	var hits []*hit
	for i := range 30 {
		hits = append(hits, &hit{target: testTarget(int64(i%3), 1, 1), cost: 1})
	}
	if n := len(a.gather(hits, 1)); n != len(hits) { // each has a target of its own
		t.Fatalf("%d groups", n)
	}
	a.gather(hits[:1], 1)
	for i, g := range a.spare[1:] {
		if g.target != nil || len(g.hits) > 0 || slices.ContainsFunc(g.hits[:cap(g.hits)], func(h *hit) bool { return h != nil }) {
			t.Errorf("group %d keeps %+v", i+1, g)
		}
	}
}
