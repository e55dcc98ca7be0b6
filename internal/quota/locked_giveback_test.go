package quota

import (
	"fmt"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// backStep is one step of a customer's: what is done, and what must be used and reserved of
// each limit after it.
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
	log, minute := model.Spec{Algorithm: "sliding_log", Limit: 10, Window: "1h"}, model.Spec{Algorithm: "fixed_window", Limit: 20, Window: "1m"}
	slide := model.Spec{Algorithm: "sliding_window", Limit: 20, Window: "1h"}
	for name, c := range map[string]struct {
		limit model.Spec
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
			db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
			e := db.startEngine(t, clock)
			c.limit.Name = "a"
			target := quotatest.Target(1, 1, 1, quotatest.Compile(t, c.limit))
			var open locked.ReservationID
			for i, s := range c.steps {
				clock.Set(quotatest.Epoch + s.at*1e6)
				got := e.backStep(t, target, &s, i, &open)
				st, err := e.Standings(testkit.Context(t), []*model.Target{target})
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

func (e *Engine) backStep(t *testing.T, target *model.Target, s *backStep, i int, open *locked.ReservationID) int64 {
	t.Helper()
	ctx, id := testkit.Context(t), model.NewID("test", fmt.Sprint(i))
	number := map[bool]int64{true: 1}
	switch s.do {
	case "hit", "hit y":
		if s.do == "hit y" {
			id = model.NewID("hit", "y")
		}
		d, err := e.decideOnce(ctx, target, s.cost, id)
		if err != nil {
			t.Fatal(err)
		}
		return number[d.Allowed]
	case "refund", "refund y":
		r := locked.Refund{Target: target, Cost: s.cost, ID: id}
		if s.do == "refund y" {
			r.Hit = model.NewID("hit", "y")
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
		db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
		e := db.startEngine(t, clock)
		before := quotatest.Target(1, 1, 1, quotatest.Bucket(t, "b", limits[0], "1h", 5000))
		if d, err := e.decideOnce(ctx, before, 2000, model.NewID("hit", "h")); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
		r, err := e.Reserve(ctx, before, 10, 3600e6, model.NewID("reservation", "r"))
		if err != nil || !r.Allowed {
			t.Fatal(err)
		}
		clock.Set(quotatest.Epoch + 100e6)
		rates := model.Rates{{From: model.Always, Limit: limits[0]}, {From: quotatest.Epoch + 100e6, Limit: limits[1]}}
		after := quotatest.Target(1, 1, 2, quotatest.Bucket(t, "b", limits[1], "1h", 5000).WithRates(rates))
		back := 100 * limits[0] / 3600
		if s, err := e.Release(ctx, after, r.ID); err != nil || s.View(0).Used != 2000-back {
			t.Errorf("%v: %d used behind a release, want %d, %v", limits, s.View(0).Used, 2000-back, err)
		}
		f, err := e.Refund(ctx, locked.Refund{Target: after, Cost: 7, Hit: model.NewID("hit", "h"), ID: model.NewID("refund", "f")})
		if err != nil || f.View(0).Used != 1993-back {
			t.Errorf("%v: %d used behind a refund, want %d, %v", limits, f.View(0).Used, 1993-back, err)
		}
	}
}

// TestLateOnOneCounter: another value's operation has taken the hold off the customer's own
// counter, at a later instant than a commit's: what is still held of the value's comes back.
func TestLateOnOneCounter(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	limits := []*model.Limit{
		quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 100}),
		quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "allocation", Limit: 100, Per: "ip"}),
	}
	base := model.NewTarget(1, quotatest.FreshCustomers(1), 1, limits, quotatest.Target(1, 1, 1).Periods, nil)
	r, err := e.Reserve(ctx, quotatest.IP(base, "2"), 5, 60e6, model.NewID("reservation", "r"))
	if err != nil || !r.Allowed {
		t.Fatal(err)
	}
	clock.Set(quotatest.Epoch + 120e6)
	if _, err := e.Refund(ctx, locked.Refund{Target: quotatest.IP(base, "1"), Cost: 1, ID: model.NewID("refund", "f")}); err != nil {
		t.Fatal(err)
	}
	clock.Set(quotatest.Epoch + 30e6)
	s, err := e.Commit(ctx, base, r.ID, 5)
	if err != nil || !s.Late || s.View(0).Used != 5 || s.View(1).Used != 5 {
		t.Fatalf("%+v, %v", s.Views(), err)
	}
	if n := rowsIn(t, db, "holds"); n != 0 {
		t.Errorf("%d holds are left", n)
	}
}
