package quota

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/ledger"
	"quotad/internal/quota/model"
	"quotad/internal/quota/quotatest"
)

// TestRefundOfAClosedPeriod: the hit's period has ended, and the delay has passed in which
// it is still written to: what is given back is taken off the present one.
func TestRefundOfAClosedPeriod(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 50}))
	target.Interval = calendar.Interval{Unit: calendar.Days, Count: 1}
	hit := model.NewID("hit", "one")
	if d, err := e.decideOnce(ctx, target, 20, hit); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	hour := hourOf(target, quotatest.Epoch)
	_, end := target.Period(quotatest.Epoch)
	for i, c := range []struct{ at, cost, then, now int64 }{
		{end + ledger.CloseDelay - 1, 5, 15, 0}, // still open
		{end + ledger.CloseDelay, 7, 15, -7},
		{end + ledger.CloseDelay, 100, 15, -15}, // all that the hit has left
	} {
		clock.Set(c.at)
		if _, err := e.Refund(ctx, ledger.Refund{Target: target, Cost: c.cost, Hit: hit, ID: model.NewID("refund", fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
		s, err := e.Standings(ctx, []*model.Target{target})
		if err != nil || s[0].PeriodUsed != c.now {
			t.Errorf("%d: %d in the present period, want %d, %v", i, s[0].PeriodUsed, c.now, err)
		}
		used, err := e.Usage(ctx, 1, 1, hour, hour+1, 1)
		if err != nil || sumOf(used) != c.then {
			t.Errorf("%d: %+v in the hit's hour, want %d, %v", i, used, c.then, err)
		}
	}
	if d, err := e.Look(ctx, target, 1); err != nil || d.View(0).Used != 0 {
		t.Error(d.String(), err)
	}
	reconciled(t, db)
}

func hourOf(t *model.Target, at int64) int64 { hour, _ := t.RunningHour(at); return hour }

// TestReservationsPerValue: what a reservation holds of a value's counter comes back there,
// when the plan has the limit and when it has not any more.
func TestReservationsPerValue(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	limits := []*model.Limit{
		quotatest.Window(t, "all", 100, "1d"),
		quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "allocation", Limit: 10, Per: "ip"}),
		quotatest.Compile(t, model.Spec{Name: "slots", Algorithm: "concurrency", Limit: 2, TTL: "1h", Per: "user"}),
	}
	periods := quotatest.Target(1, 1, 1).Periods
	base, later := model.NewTarget(1, 1, 1, limits, periods, nil), model.NewTarget(2, 1, 1, limits[:1], periods, nil)
	at := map[string]string{"ip": "::1", "user": "a"}
	reserve := func(n int, target *model.Target, allowed bool) ledger.Reservation {
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

// TestManyReservations: no more than MaxOpen are open at once, and that many are no fault.
func TestManyReservations(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 1e6, "1d"))
	first, err := e.Reserve(ctx, target, 1, model.MaxTTL, model.NewID("reservation", "first"))
	if err != nil || !first.Allowed {
		t.Fatal(err)
	}
	db.Exec(ctx, t, `INSERT INTO holds (shard, customer, meter, attribute, expires_at, at, cost, key, limits)
		SELECT shard, customer, meter, attribute, expires_at - n, at, 0, md5(n::text)::uuid, limits FROM holds, generate_series(1, $1) n`, ledger.MaxOpen-1)
	db.Exec(ctx, t, `UPDATE counters SET state[2] = (SELECT min(expires_at) FROM holds)`)
	if _, err := e.Reserve(ctx, target, 1, model.MaxTTL, model.NewID("reservation", "second")); !errors.Is(err, ledger.ErrManyReservations) {
		t.Fatal(err)
	}
	if s, err := e.Commit(ctx, target, first.ID, 1); err != nil || s.Late {
		t.Fatal(err)
	}
	if r, err := e.Reserve(ctx, target, 1, model.MaxTTL, model.NewID("reservation", "third")); err != nil || !r.Allowed {
		t.Fatal(err)
	}
}

// TestUnderWay: somebody holds the counter for longer than the request's time. It is told
// so, and who sends the same again when the counter is free is charged once.
func TestUnderWay(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
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
	short, cancel := context.WithTimeout(ctx, 3*time.Second) // lock_timeout is half of that
	defer cancel()
	if _, err := e.decideOnce(short, target, 1, model.NewID("hit", "second")); !errors.Is(err, ledger.ErrUnderWay) {
		t.Fatal(err)
	}
	began := time.Now()
	if d, err := e.decideOnce(ctx, other, 1, model.NewID("hit", "other")); err != nil || !d.Allowed || time.Since(began) > time.Second {
		t.Fatal("who has nothing to do with it waited", time.Since(began), err)
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
