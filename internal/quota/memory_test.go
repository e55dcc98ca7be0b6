package quota

import (
	"testing"

	"quotad/internal/postgres/pgtest"
)

func testMemory(t *testing.T) *memory {
	t.Helper()
	m, err := newMemory(100, func(int32) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMemoryRefuses what does not fit the state that it saw, and nothing else.
func TestMemoryRefuses(t *testing.T) {
	m, l := testMemory(t), bucketLimit(t, "a", 60, "1m", 10)
	target := testTarget(1, 1, 5, l)
	at := testEpoch
	full := row{[]int64{l.ID, 10 * l.scale, ratedBy(60)}, at, 7, 5, nil}
	refuse := func(target *Target, now, cost int64, want bool) Decision {
		t.Helper()
		d, ok := m.refuse(target, now, cost)
		if ok != want {
			t.Errorf("cost %d at +%d: refused %v, want %v", cost, now-at, ok, want)
		}
		return d
	}
	refuse(target, at, 1, false)
	m.remember(target, []row{full}, at+1, true)
	d := refuse(target, at+2, 1, true)
	if d.Allowed || d.At != at+2 || d.AsOf != at+1 || d.Cost != 1 || d.Versions()[0] != 7 || d.View(0).RetryAfter != 1e6-2 {
		t.Errorf("%s, %+v", d.brief(), d.View(0))
	}
	refuse(target, at+1e6, 1, false) // refilled meanwhile
	refuse(target, at+1e6, 2, true)
	refuse(target, at+1e6-1, 1, true)
	refuse(target, at-5, 1, true) // a clock that went back is read as the row's instant
	refuse(testTarget(2, 1, 5, l), at+2, 1, false)
	refuse(testTarget(1, 2, 5, l), at+2, 1, false)
	refuse(testTarget(1, 1, 4, l), at+2, 1, false) // resolved under another change
	refuse(testTarget(1, 1, 6, l), at+2, 1, false)
	refuse(target.with("ip=1", l), at+2, 1, false) // nothing is known of its other counter
	refuse(target, at+2, 0, false)                 // what costs nothing always passes
}

// TestMemoryKeepsTheNewest: a state that arrives late does not replace a newer one, of a
// newer version or judged under a newer change.
func TestMemoryKeepsTheNewest(t *testing.T) {
	l := windowLimit(t, "a", 10, "1h")
	state := func(version, used int64) row { return row{[]int64{l.ID, used, 1}, testEpoch, version, 1, nil} }
	type seen struct {
		change, version int64
	}
	for name, c := range map[string]struct {
		first, second seen
		want          int64 // the version that is kept
	}{
		"newer version": {seen{1, 3}, seen{1, 4}, 4},
		"same version":  {seen{1, 3}, seen{1, 3}, 3},
		"older version": {seen{1, 4}, seen{1, 3}, 4},
		"newer change":  {seen{1, 4}, seen{2, 4}, 4},
		"older change":  {seen{2, 4}, seen{1, 5}, 4},
		"both newer":    {seen{1, 4}, seen{2, 9}, 9},
	} {
		m, last := testMemory(t), max(c.first.change, c.second.change)
		for i, s := range []seen{c.first, c.second} {
			m.remember(testTarget(1, 1, s.change, l), []row{state(s.version, 10)}, testEpoch+int64(i), true)
		}
		d, ok := m.refuse(testTarget(1, 1, last, l), testEpoch+5, 1)
		if !ok || d.Versions()[0] != c.want {
			t.Errorf("%s: %v %v, want %d", name, ok, d.Versions(), c.want)
		}
	}
}

// TestMemoryForgets a state when every limit has its whole quota back.
func TestMemoryForgets(t *testing.T) {
	m, hour, bucket := testMemory(t), windowLimit(t, "a", 10, "1h"), bucketLimit(t, "b", 1, "2h", 1)
	target := testTarget(1, 1, 1, hour, bucket)
	m.remember(target, []row{{[]int64{hour.ID, 10, 1, bucket.ID, bucket.scale, ratedBy(1)}, testEpoch + 60e6, 1, 1, nil}}, testEpoch+60e6, true)
	end := testEpoch + 7200e6 + 60e6
	if _, ok := m.seen.Get(target.Counters[0].Key, end-1); !ok {
		t.Error("forgotten too early")
	}
	if _, ok := m.seen.Get(target.Counters[0].Key, end); ok {
		t.Error("kept too long")
	}
}

// TestMemorySparesTheDatabase: a refused customer's next hit sends no statement, on a
// node that may use its memory, until there is something to admit again.
func TestMemorySparesTheDatabase(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), newTestClock(testEpoch)
	usable := true
	e := db.startEngine(t, clock, func(o *Options) { o.MemoryUsable = func() bool { return usable } })
	target := testTarget(freshCustomers(1), 1, 1, windowLimit(t, "a", 1, "1h"))
	decide := func(allowed, memory bool) {
		t.Helper()
		before := e.Stats()
		d, err := e.Decide(ctx, target, 1)
		after := e.Stats()
		if err != nil || d.Allowed != allowed || (d.AsOf != 0) != memory || (after.Batches == before.Batches) != memory {
			t.Errorf("%s, %v; %d statements", d.brief(), err, after.Statements-before.Statements)
		}
	}
	decide(true, false)
	decide(false, false)
	decide(false, true)
	usable = false
	decide(false, false)
	usable = true
	decide(false, true)
	clock.set(testEpoch + 3600e6)
	decide(true, false)
	decide(false, false)
}

// TestMemoryOfLargeStates: a state with a long log is kept apart, where there is room for
// few, and is forgotten when the counter's state is a short one again, and back.
func TestMemoryOfLargeStates(t *testing.T) {
	m := testMemory(t)
	l := mustCompile(t, Spec{Name: "a", Algorithm: "sliding_log", Limit: 100, Window: "1h"})
	logged := func(customer, version int64, blocks int) (*Target, row) {
		r := row{state: []int64{l.ID, 0, 0}, at: testEpoch + version, version: version, change: 1}
		for i := range blocks {
			b, log := l.stand(r.state, r.at, moment{at: r.at})
			r.state = l.loggedAt(nil, b.level, log, r.at-int64(blocks-i), 100/int64(blocks))
		}
		return testTarget(customer, 1, 1, l), r
	}
	for i, blocks := range []int{100, 1, 100} {
		target, r := logged(1, int64(i+1), blocks)
		m.remember(target, []row{r}, r.at, i == 0)
		d, ok := m.refuse(target, r.at, 1)
		if !ok || d.Versions()[0] != r.version || m.seen.Len()+m.large.Len() != 1 || (m.large.Len() == 1) != (blocks > 1) {
			t.Errorf("%d blocks: refused %v by %s; %d short and %d long states are kept", blocks, ok, d.brief(), m.seen.Len(), m.large.Len())
		}
	}
	target, late := logged(1, 2, 1)
	m.remember(target, []row{late}, late.at, true)
	if d, ok := m.refuse(target, late.at, 1); !ok || d.Versions()[0] != 3 {
		t.Errorf("a late short state replaced a newer long one: %s", d.brief())
	}
	for customer := range int64(1000) {
		target, r := logged(customer, 1, 100)
		m.remember(target, []row{r}, r.at, true)
	}
	if n := m.large.Len(); n > 2*fewestLarge {
		t.Errorf("%d long states are kept", n)
	}
}
