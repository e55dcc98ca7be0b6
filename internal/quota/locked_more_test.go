package quota

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestLateInAnEndedPeriod: what is given back, imported or corrected in a billing period that has
// ended is an adjustment of its hour. The period's own usage stays, and so does the running period.
func TestLateInAnEndedPeriod(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target, end := dailyTarget(1,
		quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 500}), quotatest.Window(t, "hours", 1000, "2h"))
	hit := model.NewID("hit", "one")
	clock.Set(end - 60e6)
	if d, err := e.decideOnce(ctx, target, 20, hit); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	hour := hourOf(target, end-60e6)
	refund := func(cost int64) func(model.ID) error {
		return func(id model.ID) error {
			_, err := e.Refund(ctx, locked.Refund{Target: target, Cost: cost, Hit: hit, ID: id})
			return err
		}
	}
	for i, c := range []struct {
		at   int64
		do   func(model.ID) error
		want [4]int64 // usage of the hour, of that without adjustments, seats, and of the window
	}{
		{end - 1, refund(5), [4]int64{15, 15, 15, 15}},
		{end, refund(4), [4]int64{11, 15, 11, 11}},
		{end + 3600e6, refund(1), [4]int64{10, 15, 10, 10}},
		{end + 30*86400e6, refund(3), [4]int64{7, 15, 7, 0}},
		{end, func(id model.ID) error { // at the instant that the row has come to
			return e.ImportAll(ctx, []locked.Import{{Target: target, ID: id, Cost: 100, At: end - 1}})[0].Err
		}, [4]int64{107, 15, 107, 107}},
		{end, func(id model.ID) error {
			_, err := e.Adjust(ctx, locked.Adjustment{Target: target, ID: id, Cost: -2, At: hour, Reason: "late"})
			return err
		}, [4]int64{105, 15, 107, 107}},
		{end + 31*86400e6, refund(100), [4]int64{98, 15, 100, 0}}, // all that the hit has left
		{end + 31*86400e6, refund(1), [4]int64{98, 15, 100, 0}},
	} {
		clock.Set(c.at)
		for range 2 {
			if err := c.do(model.NewID("late", fmt.Sprint(i))); err != nil {
				t.Fatal(i, err)
			}
		}
		used, err := e.Usage(ctx, 1, 1, hour, end, 10)
		if err != nil {
			t.Fatal(err)
		}
		finished, running := db.usageBefore(t, 1, end)
		s, err := e.Standings(ctx, []*model.Target{target})
		if err != nil || c.at >= end && s[0].PeriodUsed != 0 {
			t.Errorf("%d: %d in the present period, %v", i, s[0].PeriodUsed, err)
		}
		if got := [4]int64{sumOf(used), finished + running, s[0].View(0).Used, s[0].View(1).Used}; got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
	reconciled(t, db)
}

// TestLateBehindAFence: a customer's period was cut and fenced a moment ago, and no time has passed
// on the clock. What comes is late all the same.
func TestLateBehindAFence(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target, _ := dailyTarget(1, quotatest.Window(t, "a", 1000, "1d"))
	hit, hour := model.NewID("hit", "one"), hourOf(target, quotatest.Epoch)
	if d, err := e.decideOnce(ctx, target, 20, hit); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	before, cut := target.Periods, quotatest.Epoch+1 // as by a change that counts at once
	target, _ = dailyTarget(1, target.Counters[0].Limits...)
	target.Change, target.Before, target.From = 2, &before, cut
	e.fence(ctx, t, fencesOf(cut, target))
	if _, err := e.Refund(ctx, locked.Refund{Target: target, Cost: 5, Hit: hit, ID: model.NewID("refund", "r")}); err != nil {
		t.Fatal(err)
	}
	if in := e.ImportAll(ctx, []locked.Import{{Target: target, ID: model.NewID("import", "i"), Cost: 100, At: quotatest.Epoch}}); in[0].Err != nil {
		t.Fatal(in[0].Err)
	}
	if finished, running := db.usageBefore(t, 1, cut); finished != 20 || running != 0 {
		t.Errorf("%d and %d units are booked, want 20 and none", finished, running)
	}
	used, err := e.Usage(ctx, 1, 1, hour, cut, 10)
	if err != nil || sumOf(used) != 20-5+100 {
		t.Errorf("%+v, %v", used, err)
	}
	reconciled(t, db)
}

func hourOf(t *model.Target, at int64) int64 { hour, _ := t.RunningHour(at); return hour }

// TestReservationsPerValue: what a reservation holds of a value's counter comes back there,
// when the plan has the limit and when it has not any more.
func TestReservationsPerValue(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	limits := []*model.Limit{
		quotatest.Window(t, "all", 100, "1d"),
		quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "allocation", Limit: 10, Per: "ip"}),
		quotatest.Compile(t, model.Spec{Name: "slots", Algorithm: "concurrency", Limit: 2, TTL: "1h", Per: "user"}),
	}
	periods := quotatest.Target(1, 1, 1).Periods
	base, later := model.NewTarget(1, 1, 1, limits, periods, nil), model.NewTarget(2, 1, 1, limits[:1], periods, nil)
	at := map[string]string{"ip": "::1", "user": "a"}
	reserve := func(n int, target *model.Target, allowed bool) locked.Reservation {
		t.Helper()
		r, err := e.Reserve(ctx, target.For(at), 4, 60e6, model.NewID("reservation", fmt.Sprint(n)))
		if err != nil || r.Allowed != allowed {
			t.Fatal(r.String(), err)
		}
		return r
	}
	a := reserve(1, base, false) // four slots of two
	at["user"] = ""
	if d, err := e.Decide(ctx, base.For(at), 3); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	limits[2] = quotatest.Compile(t, model.Spec{Name: "slots", Algorithm: "concurrency", Limit: 8, TTL: "1h", Per: "user"})
	base = model.NewTarget(1, 1, 1, limits, periods, nil)
	a = reserve(2, base, true)
	if r := reserve(3, base, false); r.View(1).RetryAfter != 60e6 {
		t.Errorf("the value's allocation is free in a minute: %+v", r.View(1))
	}
	if s, err := e.Commit(ctx, base, a.ID, 1); err != nil || s.View(1).Used != 4 {
		t.Fatal(s.String(), err)
	}
	b := reserve(4, base, true)
	if s, err := e.Commit(ctx, later, b.ID, 5); err != nil || s.NumViews() != 1 || s.View(0).Used != 9 {
		t.Fatal(s.String(), err)
	}
	if n := rowsIn(t, db, "holds"); n != 0 {
		t.Errorf("%d holds are left", n)
	}
	s, err := e.Standings(ctx, []*model.Target{later})
	if err != nil || s[0].PeriodUsed != 9 {
		t.Error(s, err)
	}
	reconciled(t, db)
}

// TestManyReservations: a customer has no more reservations open on a meter than it may have. One
// more is refused and not charged, and one that ends makes room for another.
func TestManyReservations(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, func(o *Options) { o.MaxReservations = 3 })
	target, other := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 1e6, "1d")), quotatest.Target(1, 2, 1, quotatest.Window(t, "a", 1e6, "1d"))
	reserve := func(target *model.Target, id string) (locked.ReservationID, error) {
		r, err := e.Reserve(ctx, target, 1, 60e6, model.NewID("reservation", id))
		return r.ID, err
	}
	used := func() int64 {
		s, err := e.Standings(ctx, []*model.Target{target})
		if err != nil {
			t.Fatal(err)
		}
		return s[0].View(0).Used
	}
	var open []locked.ReservationID
	for i := range 3 {
		id, err := reserve(target, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, id)
	}
	many := &locked.ManyReservationsError{}
	if _, err := reserve(target, "3"); !errors.As(err, &many) || many.Most != 3 || used() != 3 {
		t.Fatalf("a fourth: %v, with %d used", err, used())
	}
	if _, err := reserve(other, "on another meter"); err != nil {
		t.Fatal(err)
	}
	if id, err := reserve(target, "0"); err != nil || id != open[0] {
		t.Fatal("the first is not answered again", id, err)
	}
	if d, err := e.decideOnce(ctx, target, 1, model.NewID("hit", "a")); err != nil || !d.Allowed {
		t.Fatal("a hit is refused", d.String(), err)
	}
	if s, err := e.Commit(ctx, target, open[0], 1); err != nil || s.Late {
		t.Fatal(err)
	}
	if _, err := reserve(target, "3"); err != nil {
		t.Fatal(err)
	}
	if _, err := reserve(target, "4"); !errors.Is(err, locked.ErrManyReservations) {
		t.Fatal(err)
	}
	clock.Set(quotatest.Epoch + 60e6) // all are over
	if _, err := reserve(target, "4"); err != nil {
		t.Fatal(err)
	}
}

// TestUnderWay: somebody holds the counter for longer than the request's time. It is told
// so, and who sends the same again when the counter is free is charged once.
func TestUnderWay(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, func(o *Options) { o.Stopwatch = func() time.Duration { return time.Hour } })
	target, other := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1h")), quotatest.Target(2, 1, 1, quotatest.Window(t, "a", 10, "1h"))
	for _, target := range []*model.Target{target, other} {
		if d, err := e.decideOnce(ctx, target, 1, model.NewID("hit", "first")); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	holder, err := db.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(ctx) }()
	if _, err := holder.Exec(ctx, "SELECT FROM counters WHERE customer = 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	short, giveUp := context.WithCancel(ctx)
	defer giveUp()
	told := make(chan error, 1)
	go func() {
		_, err := e.decideOnce(short, target, 1, model.NewID("hit", "second"))
		told <- err
	}()
	testkit.Eventually(t, "a lock was waited for in vain", e.workers[0].SkipsLocked) // for as long as the stopwatch stands
	since := e.Stats()
	testkit.Eventually(t, "the held row is skipped", func() bool { return e.Stats().Batches >= since.Batches+2 })
	if d, err := e.decideOnce(ctx, other, 1, model.NewID("hit", "other")); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	if waited := e.Stats().Retried - since.Retried; waited > 0 {
		t.Errorf("a lock was waited for %d times more", waited)
	}
	giveUp()
	if err := <-told; !errors.Is(err, locked.ErrUnderWay) {
		t.Fatal(err)
	}
	if err := holder.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for again := range 2 {
		if d, err := e.decideOnce(ctx, target, 1, model.NewID("hit", "second")); err != nil || !d.Allowed || d.Replayed != (again == 1) {
			t.Fatal(d.String(), err)
		}
	}
}
