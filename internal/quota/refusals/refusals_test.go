package refusals

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit/quotatest"
)

func testMemory(t *testing.T) *Memory {
	t.Helper()
	m, err := New(100, func(int32) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// after is the row of a target's own counter that was charged a cost.
func after(t *model.Target, at, cost, version int64) model.Row {
	rows := make([]model.Row, 1)
	t.Charge(rows, cost, at, nil)
	rows[0].Version, rows[0].Change = version, t.Change
	return rows[0]
}

// TestMemoryRefuses what does not fit the state that it saw, and nothing else.
func TestMemoryRefuses(t *testing.T) {
	m, l := testMemory(t), quotatest.Bucket(t, "a", 60, "1m", 10)
	target := quotatest.Target(1, 1, 5, l)
	at := quotatest.Epoch
	full := after(target, at, 10, 7)
	refuse := func(target *model.Target, now, cost int64, want bool) model.Decision {
		t.Helper()
		d, ok := m.Refuse(target, now, cost)
		if ok != want {
			t.Errorf("cost %d at +%d: refused %v, want %v", cost, now-at, ok, want)
		}
		return d
	}
	refuse(target, at, 1, false)
	m.Remember(target, []model.Row{full}, at+1, true)
	d := refuse(target, at+2, 1, true)
	if d.Allowed || d.At != at+2 || d.AsOf != at+1 || d.Cost != 1 || d.Versions()[0] != 7 || d.View(0).RetryAfter != 1e6-2 {
		t.Errorf("%s, %+v", d.String(), d.View(0))
	}
	refuse(target, at+1e6, 1, false) // refilled meanwhile
	refuse(target, at+1e6, 2, true)
	refuse(target, at+1e6-1, 1, true)
	refuse(target, at-5, 1, true) // a clock that went back is read as the row's instant
	refuse(quotatest.Target(2, 1, 5, l), at+2, 1, false)
	refuse(quotatest.Target(1, 2, 5, l), at+2, 1, false)
	refuse(quotatest.Target(1, 1, 4, l), at+2, 1, false) // resolved under another change
	refuse(quotatest.Target(1, 1, 6, l), at+2, 1, false)
	refuse(quotatest.WithCounter(target, "ip=1", l), at+2, 1, false) // nothing is known of its other counter
	refuse(target, at+2, 0, false)                                   // what costs nothing always passes
}

// TestMemoryKeepsTheNewest: a state that arrives late does not replace a newer one, of a
// newer version or judged under a newer change.
func TestMemoryKeepsTheNewest(t *testing.T) {
	l := quotatest.Window(t, "a", 10, "1h")
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
			target := quotatest.Target(1, 1, s.change, l)
			m.Remember(target, []model.Row{after(target, quotatest.Epoch, 10, s.version)}, quotatest.Epoch+int64(i), true)
		}
		d, ok := m.Refuse(quotatest.Target(1, 1, last, l), quotatest.Epoch+5, 1)
		if !ok || d.Versions()[0] != c.want {
			t.Errorf("%s: %v %v, want %d", name, ok, d.Versions(), c.want)
		}
	}
}

// TestMemoryForgets a state when every limit has its whole quota back.
func TestMemoryForgets(t *testing.T) {
	m, hour, bucket := testMemory(t), quotatest.Window(t, "a", 10, "1h"), quotatest.Bucket(t, "b", 1, "2h", 1)
	target := quotatest.Target(1, 1, 1, hour, bucket)
	m.Remember(target, []model.Row{after(target, quotatest.Epoch+60e6, 1, 1)}, quotatest.Epoch+60e6, true)
	end := quotatest.Epoch + 7200e6 + 60e6
	if _, ok := m.Seen.Get(target.Counters[0].Key, end-1); !ok {
		t.Error("forgotten too early")
	}
	if _, ok := m.Seen.Get(target.Counters[0].Key, end); ok {
		t.Error("kept too long")
	}
}

// logged is a full counter of a log of so many blocks, of 1,000 units.
func logged(t testing.TB, customer, version int64, blocks int) (*model.Target, model.Row) {
	l := quotatest.Compile(t, model.Spec{Name: "a", Algorithm: "sliding_log", Limit: 1000, Window: "1h"})
	target, rows, at := quotatest.Target(customer, 1, 1, l), make([]model.Row, 1), quotatest.Epoch+version
	for i := range blocks {
		target.Charge(rows, 1000/int64(blocks), at-int64(blocks-i), nil)
	}
	rows[0].At, rows[0].Version, rows[0].Change = at, version, 1
	return target, rows[0]
}

// TestMemoryOfLongLogs: the state of a counter is kept, whether its log is long or short, and
// the newest one of them.
func TestMemoryOfLongLogs(t *testing.T) {
	m := testMemory(t)
	for i, blocks := range []int{1000, 1, 1000} {
		target, r := logged(t, 1, int64(i+1), blocks)
		m.Remember(target, []model.Row{r}, r.At, i == 0)
		d, ok := m.Refuse(target, r.At, 1)
		if !ok || d.Versions()[0] != r.Version || m.Seen.Len() != 1 {
			t.Errorf("%d blocks: refused %v by %s; %d states are kept", blocks, ok, d.String(), m.Seen.Len())
		}
	}
	target, late := logged(t, 1, 2, 1)
	m.Remember(target, []model.Row{late}, late.At, true)
	if d, ok := m.Refuse(target, late.At, 1); !ok || d.Versions()[0] != 3 {
		t.Errorf("a late short state replaced a newer long one: %s", d.String())
	}
}

// TestMemoryIsBounded: room for 1,000 refusals of two limits is room for few of long logs or
// with many holds, and what is too large for it is not kept.
func TestMemoryIsBounded(t *testing.T) {
	limits := []*model.Limit{quotatest.Window(t, "a", 10, "1h"), quotatest.Bucket(t, "b", 1, "2h", 1)}
	usual := after(quotatest.Target(1, 1, 1, limits...), quotatest.Epoch, 1, 1)
	held := usual
	held.Holds = model.NewHolds(slices.Repeat([]model.Hold{{Expires: quotatest.Epoch + 60e6, Limits: make([]int64, 2)}}, 100))
	huge := usual
	huge.State = make([]int64, 3000)
	log := usual
	log.State = make([]int64, 1000)
	for name, c := range map[string]struct {
		row          model.Row
		fewest, most int
	}{
		"usual":  {usual, 900, 1000},
		"a log":  {log, 35, 45},
		"holds":  {held, 24, 40},
		"larger": {huge, 0, 0},
	} {
		m, err := New(1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		for customer := range int64(3000) {
			m.Remember(quotatest.Target(customer, 1, 1, limits...), []model.Row{c.row}, quotatest.Epoch, true)
		}
		if n := m.Seen.Len(); n < c.fewest || n > c.most {
			t.Errorf("%s: %d are kept, not %d to %d", name, n, c.fewest, c.most)
		}
	}
}

// TestRefusalsWeigh what they take of memory.
func TestRefusalsWeigh(t *testing.T) {
	const n = 20_000
	window, bucket := quotatest.Window(t, "a", 10, "1h"), quotatest.Bucket(t, "b", 1, "2h", 1)
	for _, limits := range [][]*model.Limit{{window}, {window, bucket}} {
		m, err := New(2*n, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := after(quotatest.Target(1, 1, 1, limits...), quotatest.Epoch, 1, 1)
		before := heapInUse()
		for customer := range int64(n) {
			m.Remember(quotatest.Target(customer, 1, 1, limits...), []model.Row{r}, quotatest.Epoch, true)
		}
		each, want := int(heapInUse()-before)/n, weigh(model.CounterKey{}, refusal{Row: r})
		t.Logf("%d limits: %d bytes, weighed as %d", len(limits), each, want)
		if m.Seen.Len() != n || each > want || each < want*3/4 {
			t.Errorf("%d limits: each of %d takes %d bytes and is weighed as %d", len(limits), m.Seen.Len(), each, want)
		}
		runtime.KeepAlive(m)
	}
}

// heapInUse is what lives, bytes.
func heapInUse() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// BenchmarkRefuse is a refusal from memory, of one customer or of any of 10,000.
func BenchmarkRefuse(b *testing.B) {
	window, bucket := quotatest.Window(b, "a", 1, "1h"), quotatest.Bucket(b, "b", 1, "2h", 1)
	m, err := New(16384, func(int32) bool { return false })
	if err != nil {
		b.Fatal(err)
	}
	targets := make([]*model.Target, 10_000)
	for i := range targets {
		targets[i] = quotatest.Target(int64(i), 1, 1, window, bucket)
		m.Remember(targets[i], []model.Row{after(targets[i], quotatest.Epoch, 1, 1)}, quotatest.Epoch, true)
	}
	for _, customers := range []int{1, len(targets)} {
		b.Run(fmt.Sprint(customers), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, ok := m.Refuse(targets[i*7919%customers], quotatest.Epoch+1, 1); !ok {
					b.Fatal("not refused")
				}
			}
		})
	}
	b.Run("remember", func(b *testing.B) {
		full := after(targets[0], quotatest.Epoch, 1, 1)
		b.ReportAllocs()
		for i := range b.N {
			t := targets[i*7919%len(targets)]
			full.Version = int64(i)
			m.Remember(t, []model.Row{full}, quotatest.Epoch, true)
		}
	})
}
