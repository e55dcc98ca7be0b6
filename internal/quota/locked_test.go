package quota

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// decideOnce decides a hit with an id.
func (e *Engine) decideOnce(ctx context.Context, t *model.Target, cost int64, id model.ID) (model.Decision, error) {
	r := e.DecideAll(ctx, []model.Hit{{Target: t, Cost: cost, ID: id}})[0]
	return r.Decision, r.Err
}

// TestHitsOnce: an admitted hit is charged once under its id, on whatever engine it is sent
// again; a refused one is judged again.
func TestHitsOnce(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	engines := []*Engine{db.startEngine(t, clock), db.startEngine(t, clock)}
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1h"), quotatest.Bucket(t, "b", 60, "1m", 20))
	first, err := engines[0].decideOnce(ctx, target, 7, model.NewID("hit", "one", "7"))
	if err != nil || !first.Allowed || first.Replayed {
		t.Fatal(first.String(), err)
	}
	for i := range 4 {
		clock.Set(quotatest.Epoch + int64(i)*1e6)
		again, err := engines[i%2].decideOnce(ctx, target, 7, model.NewID("hit", "one", "7"))
		if err != nil || !again.Allowed || !again.Replayed || again.At != first.At || again.Cost != 7 {
			t.Fatal(again.String(), err)
		}
		for v := range first.NumViews() {
			if got, want := again.View(v), first.View(v); got.Used != want.Used || got.Remaining != want.Remaining || got.ResetAt != want.ResetAt ||
				got.Limit.Name != want.Limit.Name {
				t.Errorf("replayed %+v, first %+v", got, want)
			}
		}
	}
	if _, err := engines[1].decideOnce(ctx, target, 6, model.NewID("hit", "one", "6")); !errors.Is(err, locked.ErrOtherPayload) {
		t.Error(err)
	}
	late := model.NewID("hit", "two", "5")
	if d, err := engines[1].decideOnce(ctx, target, 5, late); err != nil || d.Allowed {
		t.Fatal(d.String(), err)
	}
	clock.Set(quotatest.Epoch + 3600e6)
	if d, err := engines[0].decideOnce(ctx, target, 5, late); err != nil || !d.Allowed || d.Replayed {
		t.Fatal(d.String(), err)
	}
	s, err := engines[0].Standings(ctx, []*model.Target{target})
	if err != nil || s[0].PeriodUsed != 12 {
		t.Fatalf("%+v, %v", s, err)
	}
	reconciled(t, db)
}

func reconciled(t testing.TB, db *testDB) {
	t.Helper()
	// Targets of these tests have no customers' rows, which Reconcile asks for.
	var wrong int
	err := db.Pool.QueryRow(testkit.Context(t), `
		SELECT count(*) FROM counters c WHERE attribute = '' AND total <> units + coalesce((
			SELECT sum(admitted) FROM usage u WHERE u.customer = c.customer AND u.meter = c.meter), 0)`).Scan(&wrong)
	if err != nil || wrong > 0 {
		t.Errorf("%d counters whose total is not their usage, %v", wrong, err)
	}
}

// TestRefunds: of a hit, in parts that add up to it; of the present windows, not below zero.
func TestRefunds(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	hour, seats := quotatest.Window(t, "hour", 100, "1h"), quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 50})
	log := quotatest.Compile(t, model.Spec{Name: "log", Algorithm: "sliding_log", Limit: 100, Window: "1m"})
	slide := quotatest.Compile(t, model.Spec{Name: "slide", Algorithm: "sliding_window", Limit: 100, Window: "10m"})
	target := quotatest.Target(1, 1, 1, hour, seats, log, slide)
	hit := model.NewID("hit", "h", "30")
	if d, err := e.decideOnce(ctx, target, 30, hit); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	for i, c := range []struct {
		at, cost int64
		of       model.ID
		units    int64
		used     [4]int64
		period   int64
	}{
		{0, 10, hit, 10, [4]int64{20, 20, 20, 20}, 20},
		{30e6, 5, model.ID{}, 5, [4]int64{15, 15, 15, 15}, 15},
		{60e6, 1, hit, 1, [4]int64{14, 14, 0, 14}, 14}, // the minute is over
		{600e6, 2, hit, 2, [4]int64{12, 12, 0, 12}, 12},
		{3600e6, 3, hit, 3, [4]int64{0, 9, 0, 0}, 9}, // the hour is over
		{3600e6, 50, hit, 9, [4]int64{0, 0, 0, 0}, 0},
		{3600e6, 50, hit, 0, [4]int64{0, 0, 0, 0}, 0},
	} {
		clock.Set(quotatest.Epoch + c.at)
		id := model.NewID("refund", fmt.Sprint(i), fmt.Sprint(c.cost))
		for again := range 2 {
			r, err := e.Refund(ctx, locked.Refund{Target: target, Cost: c.cost, Hit: c.of, ID: id})
			if err != nil || r.Units != c.units || r.Replayed != (again == 1) {
				t.Fatalf("%d: %d units, %v", i, r.Units, err)
			}
		}
		s, err := e.Standings(ctx, []*model.Target{target})
		if err != nil {
			t.Fatal(err)
		}
		for v, want := range c.used {
			if got := s[0].View(v).Used; got != want {
				t.Errorf("%d: %s has %d used, want %d", i, target.Limit(v).Name, got, want)
			}
		}
		if s[0].PeriodUsed != c.period {
			t.Errorf("%d: %d in the period, want %d", i, s[0].PeriodUsed, c.period)
		}
	}
	reconciled(t, db)
}

// TestReservations: held, committed with less, more and late, released, expired by
// themselves.
func TestReservations(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	slots := quotatest.Compile(t, model.Spec{Name: "slots", Algorithm: "concurrency", Limit: 3, TTL: "10m"})
	day := quotatest.Window(t, "day", 100, "1d")
	base := quotatest.Target(1, 1, 1, day)
	target := model.NewTarget(1, 1, 1, []*model.Limit{day, slots}, base.Periods, nil)
	reserve := func(id string, cost, ttl int64, allowed bool) locked.Reservation {
		t.Helper()
		r, err := e.Reserve(ctx, target, cost, ttl, model.NewID("reservation", id, fmt.Sprint(cost)))
		if err != nil || r.Allowed != allowed {
			t.Fatalf("%s: %s, %v", id, r.String(), err)
		}
		return r
	}
	stands := func(used, reserved, flying, period int64) {
		t.Helper()
		s, err := e.Standings(ctx, []*model.Target{target.ForReservations()})
		if err != nil {
			t.Fatal(err)
		}
		if v, c := s[0].View(0), s[0].View(1); v.Used != used || v.Reserved != reserved || c.Used != flying || s[0].PeriodUsed != period {
			t.Fatalf("used %d, reserved %d, in flight %d, in the period %d; want %d, %d, %d, %d", v.Used, v.Reserved, c.Used, s[0].PeriodUsed, used, reserved,
				flying, period)
		}
	}
	a, b, c := reserve("a", 1, 60e6, true), reserve("b", 1, 120e6, true), reserve("c", 1, 3600e6, true)
	if c.ExpiresAt != quotatest.Epoch+600e6 {
		t.Errorf("a concurrency limit's ttl is the longest: %d", c.ExpiresAt-quotatest.Epoch)
	}
	stands(3, 3, 3, 0)
	if d := reserve("d", 1, 60e6, false); d.View(1).RetryAfter != 60e6 || d.RetryAfter() != 60e6 {
		t.Errorf("the first expires in a minute: %+v", d.View(1))
	}
	if d, err := e.Decide(ctx, target, 97); err != nil || !d.Allowed {
		t.Fatal("a hit knows no concurrency limit", d.String(), err)
	}
	if d, err := e.Decide(ctx, target, 1); err != nil || d.Allowed || d.View(0).RetryAfter != 60e6 {
		t.Fatal("what is reserved is not there for hits, until it expires", d.String(), err)
	}
	s, err := e.Commit(ctx, target, a.ID, 0)
	if err != nil || s.Reserved != 1 {
		t.Fatal(s, err)
	}
	stands(99, 2, 2, 97)
	var full *locked.NoRoomError
	if _, err := e.Commit(ctx, target, b.ID, 3); !errors.As(err, &full) || full.Most != 2 || full.Late {
		t.Fatal(err)
	}
	for again := range 2 {
		if s, err := e.Commit(ctx, target, b.ID, 2); err != nil || s.Reserved != 1 || s.Cost != 2 || s.Replayed != (again == 1) {
			t.Fatal(s.String(), err)
		}
	}
	stands(100, 1, 1, 99)
	if _, err := e.Commit(ctx, target, b.ID, 1); !errors.Is(err, locked.ErrSettled) {
		t.Error(err)
	}
	clock.Set(quotatest.Epoch + 600e6 - 1)
	stands(100, 1, 1, 99)
	clock.Set(quotatest.Epoch + 600e6)
	stands(99, 0, 0, 99) // nobody has touched it
	if s, err := e.Commit(ctx, target, c.ID, 1); err != nil || !s.Late {
		t.Fatal(s.String(), err)
	}
	stands(100, 0, 0, 100)
	for range 2 {
		if _, err := e.Release(ctx, target, c.ID); !errors.Is(err, locked.ErrSettled) {
			t.Error(err)
		}
	}
	if n := rowsIn(t, db, "holds"); n != 0 {
		t.Errorf("%d holds are left", n)
	}
	reconciled(t, db)
}

func rowsIn(t testing.TB, db *testDB, table string) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(testkit.Context(t), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTogether: all hits of several customers and meters, or none.
func TestTogether(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	l := quotatest.Window(t, "a", 10, "1h")
	one, two := quotatest.Target(1, 1, 1, l), quotatest.Target(2, 3, 1, l)
	for i, c := range []struct {
		costs [3]int64 // of one, two, one
		all   bool
		used  [2]int64
	}{
		{[3]int64{4, 10, 4}, true, [2]int64{8, 10}},
		{[3]int64{1, 1, 1}, false, [2]int64{8, 10}},
		{[3]int64{1, 0, 2}, false, [2]int64{8, 10}},
		{[3]int64{1, 0, 1}, true, [2]int64{10, 10}},
	} {
		d, all, err := e.DecideTogether(ctx, []model.Hit{{Target: one, Cost: c.costs[0]}, {Target: two, Cost: c.costs[1]}, {Target: one, Cost: c.costs[2]}})
		if err != nil || all != c.all {
			t.Fatalf("%d: %v, %v", i, all, err)
		}
		for j := range d {
			if d[j].Allowed != c.all {
				t.Errorf("%d: result %d is %v", i, j, d[j].Allowed)
			}
		}
		s, err := e.Standings(ctx, []*model.Target{one, two})
		if err != nil || s[0].View(0).Used != c.used[0] || s[1].View(0).Used != c.used[1] || s[0].PeriodUsed != c.used[0] {
			t.Errorf("%d: %+v, %v", i, s, err)
		}
	}
	reconciled(t, db)
}
