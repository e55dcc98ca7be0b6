package quota

import (
	"fmt"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// hitOf decides a hit, and returns whether it was admitted.
func (e *Engine) hitOf(t *testing.T, target *model.Target, cost int64) bool {
	t.Helper()
	d, err := e.Decide(testkit.Context(t), target, cost)
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

func (e *Engine) usedOf(t *testing.T, target *model.Target, limit int) int64 {
	t.Helper()
	s, err := e.Standings(testkit.Context(t), []*model.Target{target})
	if err != nil {
		t.Fatal(err)
	}
	return s[0].View(limit).Used
}

// TestALimitThatComesBackFindsItsBucket: what was used of a limit is used when the limit was taken out and
// put back, as long as it counts, whatever the algorithm and however often that happens.
func TestALimitThatComesBackFindsItsBucket(t *testing.T) {
	for name, spec := range map[string]model.Spec{
		"allocation":     {Algorithm: "allocation", Limit: 10},
		"fixed window":   {Algorithm: "fixed_window", Limit: 10, Window: "1h"},
		"first hit":      {Algorithm: "fixed_window", Limit: 10, Window: "1h", Align: "first_hit"},
		"day":            {Algorithm: "fixed_window", Limit: 10, Window: "calendar_day"},
		"billing period": {Algorithm: "fixed_window", Limit: 10, Window: "billing_period"},
		"sliding window": {Algorithm: "sliding_window", Limit: 10, Window: "1h"},
		"sliding log":    {Algorithm: "sliding_log", Limit: 10, Window: "1h"},
		"token bucket":   {Algorithm: "token_bucket", Limit: 10, Window: "1h"},
	} {
		for kind, apart := range map[string]int64{"by edits": 1, "by a change that was scheduled": 0} {
			t.Run(name+" "+kind, func(t *testing.T) {
				spec.Name = "a"
				testComesBack(t, spec, apart)
			})
		}
	}
}

// testComesBack has a limit leave and come back six times. Change numbers are so many apart: none where a
// change that was scheduled counts without a write.
func testComesBack(t *testing.T, spec model.Spec, apart int64) {
	db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
	engines := []*Engine{db.startEngine(t, clock, withoutMemory), db.startEngine(t, clock, withoutMemory)}
	limit, other := quotatest.Compile(t, spec), quotatest.Window(t, "other", 100, "1m")
	stays := spec.Algorithm == "allocation"
	let := int64(0)
	for round := range 6 {
		e, change := engines[round%2], 1+2*apart*int64(round)
		with := quotatest.Target(1, 1, change, other, limit)
		if e.hitOf(t, with, 8) {
			let += 8
		}
		clock.Set(clock.At.Load() + 60e6)
		without := quotatest.Target(1, 1, change+apart, other)
		if !e.hitOf(t, without, 1) {
			t.Fatal("a hit that the other limit admits is refused")
		}
		if used := e.usedOf(t, quotatest.Target(1, 1, change+apart, other, limit), 1); used < 7 || used > 10 {
			t.Fatalf("round %d: %d are used", round, used)
		}
	}
	if most := int64(10); let > most {
		t.Errorf("%d were admitted within 6 minutes, past %d", let, most)
	}
	// When it would be empty by itself nothing of it is left.
	clock.Set(clock.At.Load() + 40*24*3600e6)
	if !engines[0].hitOf(t, quotatest.Target(1, 1, 20, other), 1) {
		t.Fatal("refused")
	}
	if left := rowsIn(t, db, "counters WHERE departed IS NOT NULL"); (left == 1) != stays {
		t.Errorf("%d counters keep something apart", left)
	}
	if stays && engines[1].usedOf(t, quotatest.Target(1, 1, 21, other, limit), 1) != 8 {
		t.Error("an allocation came back by waiting")
	}
	reconciled(t, db)
}

// TestARefusalMayMoveBuckets: a node that remembers the row as it was before a refusal moved a bucket of it
// writes nothing over that, also where no change number says so.
func TestARefusalMayMoveBuckets(t *testing.T) {
	db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
	a, b := db.startEngine(t, clock, withoutMemory), db.startEngine(t, clock, withoutMemory)
	other := quotatest.Window(t, "other", 8, "1m")
	with := quotatest.Target(1, 1, 1, other, quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 10}))
	without := quotatest.Target(1, 1, 1, other)
	if !a.hitOf(t, with, 8) || b.hitOf(t, without, 1) {
		t.Fatal("not decided by the other limit")
	}
	clock.Set(clock.At.Load() + 60e6)
	if !a.hitOf(t, with, 1) || !b.hitOf(t, without, 1) || !a.hitOf(t, with, 1) {
		t.Fatal("refused")
	}
	if used := b.usedOf(t, with, 1); used != 10 || a.hitOf(t, with, 1) {
		t.Errorf("%d are used", used)
	}
	reconciled(t, db)
}

// TestLimitsThatLeftAreGivenBack: refunds, named or not, releases, commits and expiries lower the
// allocations of limits that left, but for what is still reserved of them.
func TestLimitsThatLeftAreGivenBack(t *testing.T) {
	for name, opened := range map[string]bool{"at once": false, "after a hit": true} {
		t.Run(name, func(t *testing.T) {
			db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
			e := db.startEngine(t, clock)
			seats := quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 100})
			other := quotatest.Window(t, "other", 1000, "1h")
			with, without := quotatest.Target(1, 1, 1, other, seats), quotatest.Target(1, 1, 2, other)
			id := func(kind, name string) model.ID { return model.NewID(kind, name) }
			if d, err := e.decideOnce(ctx, with, 20, id("hit", "h")); err != nil || !d.Allowed {
				t.Fatal(d.String(), err)
			}
			reserve := func(name string, ttl int64) locked.ReservationID {
				r, err := e.Reserve(ctx, with, 10, ttl, id("reservation", name))
				if err != nil || !r.Allowed {
					t.Fatal(err)
				}
				return r.ID
			}
			released, committed := reserve("r", 3600e6), reserve("c", 3600e6)
			reserve("x", 60e6)
			if opened && !e.hitOf(t, without, 1) {
				t.Fatal("refused")
			}
			want := int64(50)
			step := func(what string, back int64, err error) {
				t.Helper()
				want -= back
				if err != nil {
					t.Fatal(what, err)
				}
				// A look by the limits as they were, which changes nothing.
				if used := e.usedOf(t, quotatest.Target(1, 1, 2, other, seats), 1); used != want {
					t.Fatalf("%s: %d used, want %d", what, used, want)
				}
			}
			f, err := e.Refund(ctx, locked.Refund{Target: without, Cost: 5, Hit: id("hit", "h"), ID: id("refund", "1")})
			step("a refund of the hit", f.Units, err)
			if f.Units != 5 {
				t.Errorf("%d refunded of the hit", f.Units)
			}
			_, err = e.Release(ctx, without, released)
			step("a release", 10, err)
			_, err = e.Commit(ctx, without, committed, 4)
			step("a commit of less", 6, err)
			f, err = e.Refund(ctx, locked.Refund{Target: without, Cost: 3, ID: id("refund", "2")})
			step("a refund without a hit", f.Units, err)
			f, err = e.Refund(ctx, locked.Refund{Target: without, Cost: 900, ID: id("refund", "3")})
			step("a refund of more than there is", 16, err)
			clock.Set(quotatest.Epoch + 61e6)
			step("an expiry", 10, e.Expire(ctx, without))
			if left := rowsIn(t, db, "counters WHERE departed IS NOT NULL"); want != 0 || left != 0 {
				t.Errorf("%d are left, and %d counters keep something apart", want, left)
			}
			reconciled(t, db)
		})
	}
}

// TestMostThatLeft: of more limits that left than a counter keeps, those that would be empty soonest go
// first, and an allocation never.
func TestMostThatLeft(t *testing.T) {
	db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	other := quotatest.Window(t, "other", 1000, "1h")
	var limits []*model.Limit
	for i := range 18 {
		limits = append(limits, quotatest.Window(t, fmt.Sprint("w", i), 10, fmt.Sprint(i+1, "h")))
	}
	for i := range 3 {
		limits = append(limits, quotatest.Compile(t, model.Spec{Name: fmt.Sprint("a", i), Algorithm: "allocation", Limit: 10}))
	}
	if !e.hitOf(t, quotatest.Target(1, 1, 1, append(limits, other)...), 8) || !e.hitOf(t, quotatest.Target(1, 1, 2, other), 1) {
		t.Fatal("refused")
	}
	s, err := e.Standings(testkit.Context(t), []*model.Target{quotatest.Target(1, 1, 3, append(limits, other)...)})
	if err != nil {
		t.Fatal(err)
	}
	until := func(hours int64) int64 { return quotatest.Epoch - quotatest.Epoch%(hours*3600e6) + hours*3600e6 }
	for i := range limits {
		v := s[0].View(i)
		later := 0 // windows that end after this one
		for other := range 18 {
			if i < 18 && (until(int64(other+1)) > until(int64(i+1))) {
				later++
			}
		}
		if stays := i >= 18 || later < 13; (v.Used == 8) != stays && i < 18 && until(int64(i+1)) != until(18) || i >= 18 && v.Used != 8 {
			t.Errorf("%s: %d used, %d windows end later", v.Limit.Name, v.Used, later)
		}
	}
}

// TestABucketIsKeptByItsLastRate: a token bucket that was lowered after its last charge is kept until the
// lower rate would have filled it.
func TestABucketIsKeptByItsLastRate(t *testing.T) {
	db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, withoutMemory)
	burst := int64(1000)
	bucket := func(limit int64) *model.Limit {
		return quotatest.Compile(t, model.Spec{Name: "b", Algorithm: "token_bucket", Limit: limit, Window: "1h", Burst: &burst})
	}
	other := quotatest.Window(t, "other", model.MaxNumber, "1h")
	if !e.hitOf(t, quotatest.Target(1, 1, 1, other, bucket(1000)), 1000) || e.hitOf(t, quotatest.Target(1, 1, 2, other, bucket(10)), 1000) {
		t.Fatal("not decided by the bucket")
	}
	for _, later := range []int64{60e6, 2 * 3600e6} {
		clock.Set(quotatest.Epoch + later)
		if !e.hitOf(t, quotatest.Target(1, 1, 3, other), 1) {
			t.Fatal("refused")
		}
	}
	if used := e.usedOf(t, quotatest.Target(1, 1, 4, other, bucket(10)), 1); used != 980 {
		t.Errorf("%d are used, want 980", used)
	}
}

// TestATestClockGoesBackToLimitsThatLeft: what is over by a test clock counts again when the clock is set back.
func TestATestClockGoesBackToLimitsThatLeft(t *testing.T) {
	db := newTestDB(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch), withoutMemory)
	limit, other := quotatest.Window(t, "w", 10, "1h"), quotatest.Window(t, "other", 9, "24h")
	by := func(change, later int64, limits ...*model.Limit) *model.Target {
		target := quotatest.Target(1, 1, change, limits...)
		target.Clock = &model.TestClock{Key: "c", Now: quotatest.Epoch + later}
		return target
	}
	if !e.hitOf(t, by(1, 0, other, limit), 8) || !e.hitOf(t, by(2, 60e6, other), 1) {
		t.Fatal("refused")
	}
	if d, err := e.decideOnce(testkit.Context(t), by(2, 2*3600e6, other), 1, model.NewID("hit", "h")); err != nil || d.Allowed {
		t.Fatal(d.String(), err)
	}
	if used := e.usedOf(t, by(3, 120e6, other, limit), 1); used != 8 {
		t.Errorf("%d are used", used)
	}
}

// TestBucketsThatLeftAreBroughtBack: after the repair of a clock that was ahead, a limit that comes back
// counts what was used of it in the present window, and not until the instant that the clock showed.
func TestBucketsThatLeftAreBroughtBack(t *testing.T) {
	for name, spec := range map[string]model.Spec{
		"sliding log": {Algorithm: "sliding_log", Limit: 10, Window: "1h"},
		"first hit":   {Algorithm: "fixed_window", Limit: 10, Window: "1h", Align: "first_hit"},
	} {
		for moved, hits := range map[string]bool{"apart": true, "in the state": false} {
			t.Run(name+", "+moved, func(t *testing.T) {
				const ahead = 30 * 24 * 3600e6
				db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch+ahead)
				e := db.startEngine(t, clock, withoutMemory)
				spec.Name = "l"
				limit, other := quotatest.Compile(t, spec), quotatest.Window(t, "other", 100, "1m")
				without := quotatest.Target(1, 1, 2, other)
				if !e.hitOf(t, quotatest.Target(1, 1, 1, other, limit), 8) || hits && !e.hitOf(t, without, 1) {
					t.Fatal("refused")
				}
				clock.Set(quotatest.Epoch)
				if b := e.BringBack(testkit.Context(t), []locked.Ahead{{Target: without}}); b[0].Err != nil || !b[0].Changed {
					t.Fatal(b[0])
				}
				with := quotatest.Target(1, 1, 3, other, limit)
				if used := e.usedOf(t, with, 1); used != 8 {
					t.Errorf("%d are used, want 8", used)
				}
				clock.Set(quotatest.Epoch + 3601e6)
				if used := e.usedOf(t, with, 1); used != 0 {
					t.Errorf("%d are used after an hour", used)
				}
			})
		}
	}
}
