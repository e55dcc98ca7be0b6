package quota

import (
	"context"
	"errors"
	"testing"

	"quotad/internal/postgres/pgtest"
)

// TestSwapAfterOthers: whatever else writes a row that a lane knows, the lane's next hit is
// judged by the row as it is then, and charged to that.
func TestSwapAfterOthers(t *testing.T) {
	const used = 3 // units charged by the lane that knows the row
	tests := map[string]struct {
		do   func(context.Context, *testing.T, *testDB, *Engine, *Target)
		used int64 // behind one more unit
		late int64 // µs that pass
	}{
		"nothing": {used: used + 1},
		"another node's hit": {used: used + 5 + 1, do: func(ctx context.Context, t *testing.T, _ *testDB, there *Engine, target *Target) {
			if d, err := there.Decide(ctx, target, 5); err != nil || !d.Allowed {
				t.Fatal(d.brief(), err)
			}
		}},
		"a refund": {used: used - 2 + 1, do: func(ctx context.Context, t *testing.T, _ *testDB, there *Engine, target *Target) {
			if _, err := there.Refund(ctx, Refund{Target: target, Cost: 2, ID: NewID("refund", "back")}); err != nil {
				t.Fatal(err)
			}
		}},
		"emptied with its customer": {used: 1, do: func(_ context.Context, t *testing.T, db *testDB, _ *Engine, _ *Target) {
			clearOnce(t, db, []int64{1}, true, 10)
		}},
		"removed with its customer": {used: 1, do: func(_ context.Context, t *testing.T, db *testDB, _ *Engine, _ *Target) {
			clearOnce(t, db, []int64{1}, false, 10)
		}},
		"removed, and as many hits since": {used: used + 1, late: 1, do: func(ctx context.Context, t *testing.T, db *testDB, there *Engine, target *Target) {
			clearOnce(t, db, []int64{1}, false, 10)
			for range used {
				if d, err := there.Decide(ctx, target, 1); err != nil || !d.Allowed {
					t.Fatal(d.brief(), err)
				}
			}
		}},
		// As by a node that is past the hour, and then refused.
		"its hour is another": {used: used + 1, do: func(ctx context.Context, t *testing.T, db *testDB, _ *Engine, _ *Target) {
			execSQL(ctx, t, db, "UPDATE counters SET hour = hour + 3600000000, units = 0")
		}},
		"repaired by hand": {used: used + 1, do: func(ctx context.Context, t *testing.T, db *testDB, _ *Engine, _ *Target) {
			execSQL(ctx, t, db, "UPDATE counters SET at = at + 1")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			db, ctx, clock := newTestDB(t), pgtest.Context(t), newTestClock(testEpoch)
			here, there := db.startEngine(t, clock), db.startEngine(t, clock)
			limits := []*Limit{windowLimit(t, "a", 10, "1d"), bucketLimit(t, "b", 10, "1d", 10)}
			target, theirs := testTarget(1, 1, 1, limits...), testTarget(1, 1, 1, limits...)
			for range used {
				if d, err := here.Decide(ctx, target, 1); err != nil || !d.Allowed {
					t.Fatal(d.brief(), err)
				}
			}
			swaps := here.Stats().Swapped
			if swaps == 0 {
				t.Fatal("nothing was charged by a swap")
			}
			clock.set(testEpoch + test.late)
			if test.do != nil {
				test.do(ctx, t, db, there, theirs)
			}
			d, err := here.Decide(ctx, target, 1)
			if err != nil || !d.Allowed || d.View(0).Used != test.used {
				t.Errorf("%s, %v; want %d units used", d.brief(), err, test.used)
			}
			if lost := here.Stats().SwapsLost > 0; lost != (test.do != nil) {
				t.Errorf("a swap was lost: %v", lost)
			}
			// And then it fits no more, to the unit.
			if d, err = here.Decide(ctx, target, 10-test.used+1); err != nil || d.Allowed {
				t.Errorf("%s, %v; want a refusal", d.brief(), err)
			}
			if d, err = there.Decide(ctx, theirs, 10-test.used); err != nil || !d.Allowed {
				t.Errorf("%s, %v; want all that is left", d.brief(), err)
			}
		})
	}
}

// TestSwapAfterChange: a change number that was raised without a charge is seen, too.
func TestSwapAfterChange(t *testing.T) {
	db, ctx, clock := newTestDB(t), pgtest.Context(t), newTestClock(testEpoch)
	here, there := db.startEngine(t, clock), db.startEngine(t, clock)
	limit := windowLimit(t, "a", 10, "1d")
	for range 2 {
		if d, err := here.Decide(ctx, testTarget(1, 1, 1, limit), 1); err != nil || !d.Allowed {
			t.Fatal(d.brief(), err)
		}
	}
	if d, err := there.Decide(ctx, testTarget(1, 1, 2, windowLimit(t, "a", 2, "1d")), 1); err != nil || d.Allowed {
		t.Fatal(d.brief(), err)
	}
	var stale *StaleError
	if d, err := here.Decide(ctx, testTarget(1, 1, 1, limit), 1); !errors.As(err, &stale) || stale.Change != 2 {
		t.Errorf("%s, %v; want it stale since 2", d.brief(), err)
	}
}
