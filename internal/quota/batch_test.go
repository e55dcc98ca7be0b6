package quota

import (
	"cmp"
	"math"
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

// drawHits draws hits on targets of one to three counters, some of them shared.
func drawHits(rt *rapid.T) []*hit {
	limits := []*Limit{
		{ID: 1, Algorithm: FixedWindow, rules: fixedWindow{clockWindow}, Limit: 10, Window: 7},
		{ID: 2, Algorithm: TokenBucket, rules: tokenBucket{}, Limit: 1, Window: 1, scale: 1, refill: 1},
		{ID: 3, Algorithm: SlidingWindow, rules: slidingWindow{}, Limit: 10, Window: 5},
		{ID: 4, Algorithm: Allocation, rules: allocation{}, Limit: 10},
	}
	var targets []*Target
	for range rapid.IntRange(1, 6).Draw(rt, "targets") {
		target := testTarget(1, 1, rapid.Int64Range(1, 3).Draw(rt, "change"))
		target.Counters = nil
		for _, k := range rapid.SliceOfNDistinct(rapid.Custom(drawKey), 1, 3, rapid.ID[CounterKey]).Draw(rt, "keys") {
			target.Counters = append(target.Counters, Counter{k, limits[:rapid.IntRange(0, 4).Draw(rt, "limits")]})
		}
		targets = append(targets, target)
	}
	var hits []*hit
	for range rapid.IntRange(1, 20).Draw(rt, "hits") {
		hits = append(hits, &hit{
			target: rapid.SampledFrom(targets).Draw(rt, "target"), cost: rapid.Int64Range(1, MaxNumber).Draw(rt, "cost"),
			notBefore: rapid.SampledFrom([]int64{0, 0, 150}).Draw(rt, "not before"),
			insert:    rapid.Bool().Draw(rt, "insert"), book: rapid.Bool().Draw(rt, "book"),
		})
	}
	return hits
}

func TestGather(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hits := drawHits(rt)
		groups := new(gathering).gather(hits, 100)
		var order []*Target // of first arrival
		for _, h := range hits {
			if !slices.Contains(order, h.target) {
				order = append(order, h.target)
			}
		}
		if len(groups) != len(order) {
			rt.Fatalf("%d groups of %d targets", len(groups), len(order))
		}
		for i, g := range groups {
			want := group{target: order[i], now: 100}
			sum := int64(0)
			for _, h := range hits {
				if h.target == g.target {
					sum += h.cost
					want.hits, want.sums = append(want.hits, h), append(want.sums, sum)
					want.now = max(want.now, h.notBefore)
					want.insert, want.book = want.insert || h.insert, want.book || h.book
				}
			}
			if g.target != want.target || g.now != want.now || g.insert != want.insert || g.book != want.book ||
				!slices.Equal(g.hits, want.hits) || !slices.Equal(g.sums, want.sums) {
				rt.Fatalf("group %d: %+v, want %+v", i, g, want)
			}
		}
	})
	full := make([]*hit, maxBatch)
	for i := range full {
		full[i] = &hit{target: &Target{}, cost: MaxNumber}
		full[i].target = full[0].target
	}
	if sums := new(gathering).gather(full, 0)[0].sums; !slices.IsSorted(sums) || sums[len(sums)-1] != maxBatch*MaxNumber {
		t.Error("the sums of a full batch overflow")
	}
}

func TestWaves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		groups := new(gathering).gather(drawHits(rt), 100)
		placed := make(map[*group]int)
		deepest := make(map[CounterKey]int)
		count := 0
		split := waves(groups)
		for w, wave := range split {
			seen := make(map[CounterKey]bool)
			for _, g := range wave {
				placed[g] = w
				count++
				for _, c := range g.target.Counters {
					if seen[c.Key] {
						rt.Fatalf("%v twice in wave %d", c.Key, w)
					}
					seen[c.Key] = true
				}
			}
		}
		if count != len(groups) || len(placed) != len(groups) {
			rt.Fatalf("%d groups in waves, of %d", count, len(groups))
		}
		for i, g := range groups {
			earliest := 0
			for _, c := range g.target.Counters {
				earliest = max(earliest, deepest[c.Key])
			}
			if placed[g] != earliest { // later than all before it on its counters, no later than need be
				rt.Fatalf("group %d is in wave %d, could be in %d", i, placed[g], earliest)
			}
			for _, c := range g.target.Counters {
				deepest[c.Key] = placed[g] + 1
			}
		}
	})
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
	var sorted []slot
	wave := []*group{{target: &Target{}}, {target: &Target{}}}
	for i, k := range slices.Backward(keys) {
		target := wave[i%2].target
		target.Counters = append(target.Counters, Counter{Key: k})
	}
	sorted = order(wave, nil)
	if len(sorted) != len(keys) {
		t.Fatalf("%d slots of %d counters", len(sorted), len(keys))
	}
	for i, s := range sorted {
		if got := wave[s.group].target.Counters[s.counter].Key; got != keys[i] {
			t.Fatalf("slot %d is %v, want %v", i, got, keys[i])
		}
	}
}

// TestFill: for each counter in lock order its group's parameters, its limits as encode
// writes them, and the group's sums; the parameters hold for the group's instant.
func TestFill(t *testing.T) {
	var c columns // reused, as a lane does
	rapid.Check(t, func(rt *rapid.T) {
		now := rapid.Int64Range(testEpoch, testEpoch+1e13).Draw(rt, "now")
		for _, wave := range waves(new(gathering).gather(drawHits(rt), now)) {
			c.fill(wave)
			if !slices.IsSortedFunc(c.slots, func(a, b slot) int {
				return compareKeys(wave[a.group].target.Counters[a.counter].Key, wave[b.group].target.Counters[b.counter].Key)
			}) {
				rt.Fatal("not in lock order")
			}
			for i, s := range c.slots {
				g := wave[s.group]
				counter := &g.target.Counters[s.counter]
				start, end := g.target.runningHour(g.now)
				until := end
				var limits []int64
				for _, l := range counter.Limits {
					limits, _ = l.rules.encode(l, limits, g.target.moment(g.now))
				}
				for _, other := range g.target.Counters {
					for _, l := range other.Limits {
						if l.Algorithm == FixedWindow || l.Algorithm == SlidingWindow {
							until = min(until, (g.now/l.Window+1)*l.Window)
						}
					}
				}
				hour := start
				key := CounterKey{c.customer[i], c.meter[i], c.attribute[i]}
				if key != counter.Key || c.shard[i] != Shard(key.Customer) || c.group[i] != s.group {
					rt.Fatalf("counter %d is %v of group %d, want %v of %d", i, key, c.group[i], counter.Key, s.group)
				}
				if c.now[i] != g.now || c.change[i] != g.target.Change || c.hour[i] != hour || c.until[i] != until || until <= g.now {
					rt.Fatalf("counter %d: now %d until %d change %d hour %d, want %d %d %d %d", i, c.now[i], c.until[i], c.change[i], c.hour[i], g.now, until, g.target.Change, hour)
				}
				if got := c.limits[c.limitFrom[i]-1 : c.limitTo[i]]; !slices.Equal(got, limits) {
					rt.Fatalf("counter %d: limits %v, want %v", i, got, limits)
				}
				if got := c.sums[c.sumFrom[i]-1 : c.sumTo[i]]; !slices.Equal(got, g.sums) {
					rt.Fatalf("counter %d: sums %v, want %v", i, got, g.sums)
				}
			}
		}
	})
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

// TestEncodeLimits: each algorithm's six integers, and the first instant they do not hold
// for: of several the earliest.
func TestEncodeLimits(t *testing.T) {
	target := testTarget(1, 1, 1)
	day, hour, forever := int64(86400e6), int64(3600e6), int64(math.MaxInt64)
	at := testEpoch + 61e6 // 2026-03-01T00:01:01Z, a Sunday
	spec := func(algorithm, window, align string) *Limit {
		return mustCompile(t, Spec{Name: "a", Algorithm: algorithm, Limit: 5, Window: window, Align: align})
	}
	window, bucket := windowLimit(t, "a", 5, "1m"), bucketLimit(t, "b", 6, "4us", 10)
	for name, c := range map[string]struct {
		limit *Limit
		want  []int64 // without the identity
		until int64
	}{
		"clock":        {window, []int64{1, 5, testEpoch + 60e6, 0, 0}, testEpoch + 120e6},
		"token bucket": {bucket, []int64{2, 20, 3, 2, 6}, forever},
		"sliding log": {
			mustCompile(t, Spec{Name: "a", Algorithm: "sliding_log", Limit: 5, Window: "1h", Precision: "1s", Mode: "soft"}),
			[]int64{16, 5, hour, 1e6, 0},
			forever,
		},
		"sliding window": {spec("sliding_window", "1h", ""), []int64{3, 5, testEpoch, hour, 0}, testEpoch + hour},
		"first hit":      {spec("fixed_window", "1h", "first_hit"), []int64{4, 5, hour, 0, 0}, forever},
		"allocation":     {spec("allocation", "", ""), []int64{5, 5, 0, 0, 0}, forever},
		"day":            {spec("fixed_window", "calendar_day", ""), []int64{1, 5, testEpoch, 0, 0}, testEpoch + day},
		"week":           {spec("fixed_window", "calendar_week", ""), []int64{1, 5, testEpoch - 6*day, 0, 0}, testEpoch + day},
		"month":          {spec("fixed_window", "calendar_month", ""), []int64{1, 5, testEpoch, 0, 0}, testEpoch + 31*day},
		"year":           {spec("fixed_window", "calendar_year", ""), []int64{1, 5, testEpoch - 59*day, 0, 0}, testEpoch + 306*day},
		"billing period": {spec("fixed_window", "billing_period", ""), []int64{1, 5, testEpoch - day + 17*60e6, 0, 0}, testEpoch + 30*day + 17*60e6},
	} {
		m := target.moment(at)
		want := append([]int64{9, c.limit.ID}, c.want...)
		if got, until := encodeLimits([]int64{9}, []*Limit{c.limit}, m); !slices.Equal(got, want) || until != c.until {
			t.Errorf("%s: %v until %d, want %v until %d", name, got, until, want, c.until)
		}
		want = append(want, window.ID, 1, 5, testEpoch+60e6, 0, 0)
		if got, until := encodeLimits([]int64{9}, []*Limit{c.limit, window}, m); !slices.Equal(got, want) || until != testEpoch+120e6 {
			t.Errorf("%s and a minute: %v until %d, want %v until %d", name, got, until, want, testEpoch+int64(120e6))
		}
	}
}

// TestSetKeys: each counter once, in lock order; those that book usage with their hour.
func TestSetKeys(t *testing.T) {
	var p pipeline
	rapid.Check(t, func(rt *rapid.T) {
		groups := new(gathering).gather(drawHits(rt), testEpoch)
		for i, g := range groups {
			g.hour = int64(i)
		}
		booking := rapid.Bool().Draw(rt, "booking")
		hours := p.setKeys(groups, booking)
		want := make(map[CounterKey]int64)
		for i, g := range slices.Backward(groups) {
			for _, c := range g.target.Counters {
				if !booking || c.Key.Attribute == "" {
					want[c.Key] = int64(i) // the first group's
				}
			}
		}
		if len(p.keys.customer) != len(want) || len(hours) != len(want) {
			rt.Fatalf("%d keys and %d hours of %d counters", len(p.keys.customer), len(hours), len(want))
		}
		var last CounterKey
		for i := range hours {
			key := CounterKey{p.keys.customer[i], p.keys.meter[i], p.keys.attribute[i]}
			if hour, ok := want[key]; !ok || hour != hours[i] || cmp.Compare(compareKeys(last, key), 0) >= 0 && i > 0 {
				rt.Fatalf("key %d is %v with hour %d, want %d, behind %v", i, key, hours[i], hour, last)
			}
			last = key
		}
	})
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
