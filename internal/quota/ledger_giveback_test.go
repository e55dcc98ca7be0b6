package quota

import (
	"fmt"
	"testing"

	"quotad/internal/postgres/pgtest"
)

// backStep is one step of a customer's: what is done, and what must be used and reserved of
// each limit behind it.
type backStep struct {
	at   int64 // seconds from the start on
	do   string
	cost int64
	want int64    // units given back, or whether it was admitted: 1, 0
	used [2]int64 // of the first limit: used and reserved
}

// TestGivingBackLeavesWhatIsReserved: what comes back of hits, or of the present windows, is
// never what open reservations hold; or more would be admitted in a window than its limit.
func TestGivingBackLeavesWhatIsReserved(t *testing.T) {
	log, minute := Spec{Algorithm: "sliding_log", Limit: 10, Window: "1h"}, Spec{Algorithm: "fixed_window", Limit: 20, Window: "1m"}
	slide := Spec{Algorithm: "sliding_window", Limit: 20, Window: "1h"}
	for name, c := range map[string]struct {
		limit Spec
		steps []backStep
	}{
		"log": {log, []backStep{
			{0, "hit", 5, 1, [2]int64{5, 0}},
			{3000, "reserve", 5, 1, [2]int64{10, 5}},
			{3000, "refund", 5, 5, [2]int64{5, 5}},
			{3600, "hit", 10, 0, [2]int64{5, 5}},
			{3600, "commit", 5, 1, [2]int64{5, 0}},
		}},
		"log, released": {log, []backStep{
			{0, "hit", 5, 1, [2]int64{5, 0}},
			{60, "reserve", 5, 1, [2]int64{10, 5}},
			{60, "refund", 10, 5, [2]int64{5, 5}},
			{60, "release", 0, 1, [2]int64{0, 0}},
		}},
		"fixed window, by hit": {minute, []backStep{
			{0, "hit", 5, 1, [2]int64{5, 0}},
			{60, "hit y", 5, 1, [2]int64{5, 0}},
			{60, "reserve", 10, 1, [2]int64{15, 10}},
			{60, "refund", 5, 5, [2]int64{10, 10}},
			{60, "refund y", 5, 5, [2]int64{10, 10}},
			{60, "hit", 15, 0, [2]int64{10, 10}},
			{60, "commit", 10, 1, [2]int64{10, 0}},
		}},
		"sliding window": {slide, []backStep{
			{3000, "hit", 5, 1, [2]int64{5, 0}},
			{3600, "reserve", 5, 1, [2]int64{10, 5}},
			{3600, "refund", 5, 5, [2]int64{5, 5}},
			{3600 + 1800, "hit", 1, 1, [2]int64{6, 5}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			db, clock := newTestDB(t), newTestClock(testEpoch)
			e := db.startEngine(t, clock)
			c.limit.Name = "a"
			target := testTarget(1, 1, 1, mustCompile(t, c.limit))
			var open ReservationID
			for i, s := range c.steps {
				clock.Set(testEpoch + s.at*1e6)
				got := e.backStep(t, target, &s, i, &open)
				st, err := e.Standings(pgtest.Context(t), []*Target{target})
				if err != nil {
					t.Fatal(err)
				}
				if v := st[0].View(0); got != s.want || v.Used != s.used[0] || v.Reserved != s.used[1] {
					t.Fatalf("step %d, %s %d: %d, used %d, reserved %d; want %+v", i, s.do, s.cost, got, v.Used, v.Reserved, s)
				}
			}
			reconciled(t, db)
		})
	}
}

func (e *Engine) backStep(t *testing.T, target *Target, s *backStep, i int, open *ReservationID) int64 {
	t.Helper()
	ctx, id := pgtest.Context(t), NewID("test", fmt.Sprint(i))
	number := map[bool]int64{true: 1}
	switch s.do {
	case "hit", "hit y":
		if s.do == "hit y" {
			id = NewID("hit", "y")
		}
		d, err := e.decideOnce(ctx, target, s.cost, id)
		if err != nil {
			t.Fatal(err)
		}
		return number[d.Allowed]
	case "refund", "refund y":
		r := Refund{Target: target, Cost: s.cost, ID: id}
		if s.do == "refund y" {
			r.Hit = NewID("hit", "y")
		}
		done, err := e.Refund(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return done.Units
	case "reserve":
		r, err := e.Reserve(ctx, target, s.cost, 12*3600e6, id)
		if err != nil {
			t.Fatal(err)
		}
		*open = r.ID
		return number[r.Allowed]
	case "commit":
		_, err := e.Commit(ctx, target, *open, s.cost)
		return number[err == nil]
	}
	_, err := e.Release(ctx, target, *open)
	return number[err == nil]
}

// TestGivingBackAfterAnEdit: a token bucket whose limit was edited was refilled at the old
// rate until then, whatever was given back since.
func TestGivingBackAfterAnEdit(t *testing.T) {
	for _, limits := range [][2]int64{{3600, 36000}, {36000, 3600}} {
		db, ctx, clock := newTestDB(t), pgtest.Context(t), newTestClock(testEpoch)
		e := db.startEngine(t, clock)
		before := testTarget(1, 1, 1, bucketLimit(t, "b", limits[0], "1h", 5000))
		if d, err := e.decideOnce(ctx, before, 2000, NewID("hit", "h")); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
		r, err := e.Reserve(ctx, before, 10, 3600e6, NewID("reservation", "r"))
		if err != nil || !r.Allowed {
			t.Fatal(err)
		}
		clock.Set(testEpoch + 100e6)
		after := testTarget(1, 1, 2, bucketLimit(t, "b", limits[1], "1h", 5000))
		after.Edited = testEpoch + 100e6
		back := 100 * limits[0] / 3600
		if s, err := e.Release(ctx, after, r.ID); err != nil || s.View(0).Used != 2000-back {
			t.Errorf("%v: %d used behind a release, want %d, %v", limits, s.View(0).Used, 2000-back, err)
		}
		f, err := e.Refund(ctx, Refund{Target: after, Cost: 7, Hit: NewID("hit", "h"), ID: NewID("refund", "f")})
		if err != nil || f.View(0).Used != 1993-back {
			t.Errorf("%v: %d used behind a refund, want %d, %v", limits, f.View(0).Used, 1993-back, err)
		}
	}
}

// TestLateOnOneCounter: another value's operation has taken the hold off the customer's own
// counter, at a later instant than a commit's: what is still held of the value's comes back.
func TestLateOnOneCounter(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), newTestClock(testEpoch)
	e := db.startEngine(t, clock)
	limits := []*Limit{
		mustCompile(t, Spec{Name: "seats", Algorithm: "allocation", Limit: 100}),
		mustCompile(t, Spec{Name: "ip", Algorithm: "allocation", Limit: 100, Per: "ip"}),
	}
	base := NewTarget(1, freshCustomers(1), 1, limits, testTarget(1, 1, 1).Periods, nil)
	r, err := e.Reserve(ctx, ipOf(base, "2"), 5, 60e6, NewID("reservation", "r"))
	if err != nil || !r.Allowed {
		t.Fatal(err)
	}
	clock.Set(testEpoch + 120e6)
	if _, err := e.Refund(ctx, Refund{Target: ipOf(base, "1"), Cost: 1, ID: NewID("refund", "f")}); err != nil {
		t.Fatal(err)
	}
	clock.Set(testEpoch + 30e6)
	s, err := e.Commit(ctx, base, r.ID, 5)
	if err != nil || !s.Late || s.View(0).Used != 5 || s.View(1).Used != 5 {
		t.Fatalf("%+v, %v", s.views(), err)
	}
	if n := rowsIn(t, db, "holds"); n != 0 {
		t.Errorf("%d holds are left", n)
	}
}
