package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// heldLimits are limits of each algorithm, with windows so short that a run of a few minutes sees
// many of them.
func heldLimits(t *rapid.T) (limits []*Limit) {
	specs := []Spec{
		{Algorithm: "fixed_window", Window: "40s"},
		{Algorithm: "fixed_window", Window: "30s", Align: "first_hit"},
		{Algorithm: "fixed_window", Window: "calendar_day"},
		{Algorithm: "fixed_window", Window: "billing_period"},
		{Algorithm: "sliding_window", Window: "35s"},
		{Algorithm: "sliding_log", Window: "25s", Precision: "1s"},
		{Algorithm: "sliding_log", Window: "45s", Precision: "7s"},
		{Algorithm: "token_bucket", Window: "20s"},
		{Algorithm: "allocation"},
		{Algorithm: "concurrency", TTL: "1h"},
	}
	for i, s := range rapid.SliceOfNDistinct(rapid.SampledFrom(specs), 1, 4, func(s Spec) string { return s.Algorithm + s.Window }).Draw(t, "limits") {
		s.Name = fmt.Sprint(i)
		s.Limit = rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64Range(0, MaxNumber)).Draw(t, "limit")
		s.Mode = rapid.SampledFrom([]string{"hard", "hard", "soft", "shadow"}).Draw(t, "mode")
		if l, bad := Compile(s); bad == nil {
			limits = append(limits, l)
		}
	}
	return limits
}

// heldRun is a counter, and the same by the oracle.
type heldRun struct {
	*rapid.T
	target *Target
	row    Row
	naive  naiveHolds
	now    int64
	keys   uint32 // that were given out
	seen   map[string]int
}

// TestHoldsAreTheOracle: random operations, each on what the last ones left. What is stored, and
// each view of each decision, is what the oracle says that looks at one hold after the other.
func TestHoldsAreTheOracle(t *testing.T) {
	seen := make(map[string]int)
	check := func(t *rapid.T) {
		r := &heldRun{T: t, target: testTarget(1, 1, 1, heldLimits(t)...), now: testEpoch + 86400e6 - 60e6, seen: seen}
		r.Repeat(map[string]func(*rapid.T){
			"hit": func(*rapid.T) { r.charge(false) }, "reserve": func(*rapid.T) { r.charge(true) },
			"settle": func(*rapid.T) { r.settle() }, "refund": func(*rapid.T) { r.refund() },
			"": func(*rapid.T) { r.look() },
		})
	}
	for range 15 { // a hundred runs do not meet all that is rare
		rapid.Check(t, check)
	}
	t.Log(seen)
	for _, what := range []string{"expired", "expired together", "held until", "waits", "settled", "refunded now"} {
		if seen[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
}

func (r *heldRun) cost() int64 {
	return rapid.OneOf(rapid.Int64Range(1, 9), rapid.Int64Range(1, 9), rapid.Int64Range(1, MaxNumber)).Draw(r.T, "cost")
}

// pass lets time pass, and takes off what has expired.
func (r *heldRun) pass() {
	r.now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 9e6), rapid.Int64Range(0, 60e6)).Draw(r.T, "passes")
	over := r.target.Expire(0, &r.row, r.now)
	r.naive.expire(r.target, r.now)
	if r.same(); len(over) > 0 {
		r.seen["expired"]++
	}
	if len(over) > 1 {
		r.seen["expired together"]++
	}
}

func (r *heldRun) same() {
	if !slices.Equal(r.row.State, r.naive.state) {
		r.Fatalf("the state is %v, want %v", r.row.State, r.naive.state)
	}
	if r.row.Holds.Len() != len(r.naive.holds) {
		r.Fatalf("%d holds, want %d", r.row.Holds.Len(), len(r.naive.holds))
	}
	for i, h := range r.row.Holds.all() {
		if want := r.naive.holds[i]; h.Key != want.Key || h.Cost != want.Cost {
			r.Fatalf("hold %d is %v, want %v", i, h, want)
		}
	}
}

func (r *heldRun) charge(hold bool) {
	r.pass()
	d := Judge(r.target, []Row{r.row}, r.now, r.cost())
	if r.says(&d); !d.Allowed {
		return
	}
	rows := []Row{r.row}
	d.ChargeTo(rows)
	r.row = rows[0]
	if charged := d.ChargedBy(); hold {
		h := Hold{
			Expires: d.At + rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, 200)).Draw(r.T, "ttl")*1e6, At: d.At, Cost: d.Cost,
			Limits: charged[0].Limits,
		}
		r.keys++
		binary.BigEndian.PutUint32(h.Key[:], rapid.Uint32().Draw(r.T, "key"))
		binary.BigEndian.PutUint32(h.Key[4:], r.keys)
		r.row.Holds = r.row.Holds.With(h)
		r.naive.add(h)
	}
	r.naive.state, r.naive.at = r.row.State, r.row.At
	r.same()
	after := d.Charged([]Row{r.row})
	r.says(&after)
}

func (r *heldRun) settle() {
	if r.pass(); len(r.naive.holds) == 0 {
		return
	}
	h := rapid.SampledFrom(r.naive.holds).Draw(r.T, "hold")
	units := rapid.Int64Range(0, h.Cost).Draw(r.T, "units")
	rest, one, ok := r.row.Holds.Without(h.Key)
	if !ok || one.Key != h.Key {
		r.Fatalf("%v is not there", h)
	}
	if r.row.Holds = rest; units > 0 {
		r.target.GiveBack("", &r.row, one.Limits, one.At, units)
	}
	r.naive.settle(r.target, h.Key, units)
	r.seen["settled"]++
	r.same()
}

// refund gives back what was charged at some instant, or what counts now.
func (r *heldRun) refund() {
	r.pass()
	at, cost, charged := Present, r.cost(), identities(r.target.Counters[0].Limits, 0, r.target.moment(r.now))
	if rapid.Bool().Draw(r.T, "of an instant") {
		at = r.now - rapid.Int64Range(0, 90e6).Draw(r.T, "ago")
	} else {
		r.seen["refunded now"]++
	}
	r.target.GiveBack("", &r.row, charged, at, cost)
	r.naive.giveBack(r.target, charged, at, cost)
	r.same()
}

func (r *heldRun) look() {
	r.pass()
	cost := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 9), rapid.Int64Range(0, MaxNumber)).Draw(r.T, "cost")
	d := Judge(r.target, []Row{r.row}, r.now, cost)
	r.says(&d)
	d.Allowed = false // as of a hit that another of its batch keeps out
	r.says(&d)
}

// says holds all views of a decision against the oracle.
func (r *heldRun) says(d *Decision) {
	for i := range d.NumViews() {
		c := naiveCourse{&r.naive, d.Target.LimitAt(i), d.stands()[i], d.moment(i)}
		if c.l.Algorithm == Concurrency && c.b.level != c.level() {
			r.Fatalf("%d units are in flight, want %d", c.b.level, c.level())
		}
		v := d.View(i)
		if len(c.holds) == 0 {
			continue
		}
		if want := c.reserved(); v.Reserved != want {
			r.Fatalf("%s reserves %d, want %d: %s", c.l.WindowText+c.l.Algorithm.String(), v.Reserved, want, d.String())
		}
		if want := c.resetAt(); v.ResetAt != want {
			r.Fatalf("%s is whole at +%d, want +%d: %s", c.l.WindowText+c.l.Algorithm.String(), v.ResetAt-d.At, want-d.At, d.String())
		} else if want > d.At {
			r.seen["held until"]++
		}
		if want := c.wait(d.Cost); d.Wait(i) != want {
			r.Fatalf("%s admits %d after %d, want %d: %s", c.l.WindowText+c.l.Algorithm.String(), d.Cost, d.Wait(i), want, d.String())
		} else if want > 0 {
			r.seen["waits"]++
		}
	}
}

// manyHolds is a row of a target with 20 limits of all algorithms but the calendar's, and n holds.
func manyHolds(t testing.TB, n int) (*Target, Row) {
	var limits []*Limit
	for i := range 20 {
		s := Spec{Name: fmt.Sprint(i), Limit: 1e9, Window: fmt.Sprint(i+1, "h")}
		s.Window = fmt.Sprintf("%dh", i+1)
		s.Algorithm = []string{"token_bucket", "sliding_window", "fixed_window", "sliding_log"}[i%4]
		if s.Algorithm == "sliding_log" {
			s.Precision = "10m"
		}
		limits = append(limits, mustCompile(t, s))
	}
	target, row := testTarget(1, 1, 1, limits...), Row{}
	list := make([]Hold, n)
	for i := range list {
		d, rows := decideOn(target, []Row{row}, testEpoch+int64(i)*1e6, 1)
		row = rows[0]
		list[i] = Hold{Expires: d.At + 86400e6, At: d.At, Cost: 1, Limits: d.ChargedBy()[0].Limits}
		binary.BigEndian.PutUint64(list[i].Key[:], uint64(i))
	}
	row.Holds = NewHolds(list)
	return target, row
}

// fastest is how long something takes at best. It is done again, 20 times at most, while that is longer
// than enough: a machine that stalls is not what is measured.
func fastest(enough time.Duration, do func()) time.Duration {
	best := time.Duration(math.MaxInt64)
	for tries := 0; tries < 20 && best > enough; tries++ {
		began := time.Now()
		do()
		best = min(best, time.Since(began))
	}
	return best
}

// TestManyHoldsAreReadOnce: 1,000 hits on a counter with 10,000 holds and 20 limits. Their views
// take some tens of ms. To go through the holds for each view takes minutes.
func TestManyHoldsAreReadOnce(t *testing.T) {
	target, row := manyHolds(t, 10_000)
	views := 0
	const enough = 5 * time.Second
	took := fastest(enough, func() {
		s := Series{Costs: slices.Repeat([]int64{1}, 1000)}
		views = 0
		s.Decide(target, []Row{row}, testEpoch+10_000e6, nil, func(_ int, d Decision) {
			for _, v := range d.Views() {
				if v.Reserved > 0 && v.ResetAt > d.At {
					views++
				}
			}
		})
	})
	if views < 15*1000 || took > enough {
		t.Errorf("%d views of what is held took %s", views, took)
	} else {
		t.Log(views, "views took", took)
	}
}

// TestManyHoldsExpireTogether: to take off 10,000 holds takes a look at each, and not at all
// others for each.
func TestManyHoldsExpireTogether(t *testing.T) {
	target, all := manyHolds(t, 10_000)
	var row Row
	over := 0
	const enough = 3 * time.Second
	took := fastest(enough, func() {
		row = all
		row.State = slices.Clone(all.State)
		over = len(target.Expire(0, &row, testEpoch+86400e6+9_990e6))
	})
	if over != 9_991 || row.Holds.Len() != 9 || took > enough {
		t.Errorf("%d holds expired, %d are left, in %s", over, row.Holds.Len(), took)
	} else {
		t.Log("took", took)
	}
}

func BenchmarkViewOfHolds(b *testing.B) {
	target, row := manyHolds(b, 10_000)
	d := Judge(target, []Row{row}, testEpoch+10_000e6, 1)
	for b.Loop() {
		for i := range d.NumViews() {
			_ = d.View(i)
		}
	}
}

// TestExpiredHoldsAreNotInFlight: of several counters that are judged at the latest one's instant,
// another may still have holds that are over by then.
func TestExpiredHoldsAreNotInFlight(t *testing.T) {
	flying := mustCompile(t, Spec{Name: "c", Algorithm: "concurrency", Limit: 9, TTL: "1h"})
	var list []Hold
	for i := range int64(3) {
		list = append(list, Hold{Expires: testEpoch + i*1e6, Cost: 1 + i, Limits: []int64{flying.ID}})
	}
	for at, want := range map[int64]int64{-1: 6, 0: 5, 1e6: 3, 2e6: 0} {
		d := Judge(testTarget(1, 1, 1, flying), []Row{{Holds: NewHolds(list)}}, testEpoch+at, 1)
		if got := d.View(0).Used; got != want {
			t.Errorf("at +%d %d units are in flight, want %d", at, got, want)
		}
	}
}
