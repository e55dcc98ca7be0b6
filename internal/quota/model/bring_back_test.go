package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"quotad/internal/testkit"
)

// A row that was charged ahead of the clock and is brought back still counts all that it counted,
// stands at the clock, and has its whole quota again within the time that a hit counts. Each algorithm
// is among the limits.
func TestBringBack(t *testing.T) {
	limits := []*Limit{
		windowLimit(t, "fixed", 900, "7s"), windowLimit(t, "month", 900, "calendar_month"), windowLimit(t, "period", 900, "billing_period"),
		mustCompile(t, Spec{Name: "first", Algorithm: "fixed_window", Limit: 900, Window: "7s", Align: "first_hit"}),
		limitOf(t, "sliding", "sliding_window", "11s", 900), limitOf(t, "log", "sliding_log", "9s", 900),
		mustCompile(t, Spec{Name: "blocks", Algorithm: "sliding_log", Limit: 5000, Window: "1m", Precision: "1s"}),
		bucketLimit(t, "bucket", 70, "13s", 900), mustCompile(t, Spec{Name: "seats", Algorithm: "allocation", Limit: 900}),
	}
	covered := map[Algorithm]bool{Concurrency: true} // it has no bucket
	for _, l := range limits {
		covered[l.Algorithm] = true
	}
	for _, d := range algorithms {
		if !covered[d.number] {
			t.Errorf("%s is not among the limits", d.name)
		}
	}
	target := fireTarget(1, limits)
	first := testkit.Seed(t)
	for n := range uint64(3000) {
		seed := first + n
		r := rand.New(rand.NewPCG(seed, 8))
		now, row := testEpoch+r.Int64N(30e6), []Row{{}}
		for at := now; at < now+10e6; at += 1 + r.Int64N(4e6) { // before the step
			target.Charge(row, 1+r.Int64N(5), at, nil)
		}
		now = row[0].At + 1 + r.Int64N(5e6)
		at := now + []int64{2e6, 10e6, 3600e6, 40 * 24 * 3600e6}[r.IntN(4)]
		for range 1 + r.IntN(6) {
			target.Charge(row, 1+r.Int64N(5), at, nil)
			at += r.Int64N(4e6)
		}
		ahead := Judge(target, row, now, 0)
		if ahead.At != row[0].At || ahead.Ahead != row[0].At-now {
			t.Fatalf("a row that is %d ahead is judged %d ahead", row[0].At-now, ahead.Ahead)
		}
		brought := []Row{{State: slices.Clone(row[0].State), At: row[0].At}}
		target.BringBack("", &brought[0], now)
		if err := target.Check("", &brought[0]); err != nil || brought[0].At != now {
			t.Fatalf("seed %d: %+v, %v", seed, brought[0], err)
		}
		d := Judge(target, brought, now, 0)
		for i := range d.NumViews() {
			had, has := ahead.View(i), d.View(i)
			if has.Used < had.Used {
				t.Fatalf("seed %d: %s counts %d, and counted %d ahead", seed, has.Limit.Name, has.Used, had.Used)
			}
			// No longer than a hit of now counts: a month at most, and for ever what is allocated.
			if last := now + max(has.Limit.Lifetime()+has.Limit.Precision, 31*24*3600e6*bit(has.Limit.Calendar)); has.Limit.Algorithm != Allocation &&
				has.ResetAt > last {
				t.Fatalf("seed %d: %s is whole after %d µs", seed, has.Limit.Name, has.ResetAt-now)
			}
		}
		again := brought[0]
		target.BringBack("", &again, now)
		if !slices.Equal(again.State, brought[0].State) {
			t.Fatalf("seed %d: brought back twice: %v, once: %v", seed, again.State, brought[0].State)
		}
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Of a counter ahead of the clock a refusal waits until it admits, seen from the clock.
func TestTheWaitOfACounterAheadIsFromNow(t *testing.T) {
	target := testTarget(1, 1, 1, windowLimit(t, "hour", 10, "1h"))
	at := testEpoch - testEpoch%3600e6 + 7200e6 + 600e6 // ten minutes into the hour after next
	row := []Row{{}}
	target.Charge(row, 10, at, nil)
	now := at - 7195e6
	d := Judge(target, row, now, 1)
	const left = int64(50 * 60e6) // of the window, after the decision's instant
	if want := left + 7195e6; d.Allowed || d.FromNow(d.RetryAfter()) != want || d.RetryAfter() != left || d.View(0).RetryAfter != left || d.Now() != now {
		t.Errorf("wait %d, %d; want %d and %d from now: %s", d.RetryAfter(), d.View(0).RetryAfter, left, want, d.String())
	}
	target.BringBack("", &row[0], now)
	_, end := clockWindow(target.LimitAt(0), target.moment(now))
	if d = Judge(target, row, now, 1); d.Allowed || d.RetryAfter() != end-now || d.Ahead != 0 {
		t.Errorf("brought back: wait %d, want %d: %s", d.RetryAfter(), end-now, d.String())
	}
}
