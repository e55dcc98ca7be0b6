package quota

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestSwapAfterOthers: whatever else writes a row that a lane knows, the lane's next hit is
// judged by the row as it is then, and charged to that.
func TestSwapAfterOthers(t *testing.T) {
	const used = 3 // units charged by the lane that knows the row
	tests := map[string]struct {
		kept bool // the swap is not lost
		do   func(context.Context, *testing.T, *testDB, *Engine, *model.Target)
		used int64 // after one more unit
		late int64 // µs that pass
	}{
		"nothing": {used: used + 1},
		"another node's hit": {used: used + 5 + 1, do: func(ctx context.Context, t *testing.T, _ *testDB, there *Engine, target *model.Target) {
			if d, err := there.Decide(ctx, target, 5); err != nil || !d.Allowed {
				t.Fatal(d.String(), err)
			}
		}},
		"a refund": {used: used - 2 + 1, do: func(ctx context.Context, t *testing.T, _ *testDB, there *Engine, target *model.Target) {
			if _, err := there.Refund(ctx, locked.Refund{Target: target, Cost: 2, ID: model.NewID("refund", "back")}); err != nil {
				t.Fatal(err)
			}
		}},
		"emptied with its customer": {used: 1, do: func(_ context.Context, t *testing.T, db *testDB, _ *Engine, _ *model.Target) {
			clearOnce(t, db, []int64{1}, true, 10)
		}},
		"removed with its customer": {used: 1, do: func(_ context.Context, t *testing.T, db *testDB, _ *Engine, _ *model.Target) {
			clearOnce(t, db, []int64{1}, false, 10)
		}},
		"removed, and as many hits since": {used: used + 1, late: 1, do: func(ctx context.Context, t *testing.T, db *testDB, there *Engine, target *model.Target) {
			clearOnce(t, db, []int64{1}, false, 10)
			for range used {
				if d, err := there.Decide(ctx, target, 1); err != nil || !d.Allowed {
					t.Fatal(d.String(), err)
				}
			}
		}},
		// As by a node that is past the hour, and then refused.
		"its hour is another": {kept: true, used: used + 1, do: func(ctx context.Context, t *testing.T, db *testDB, _ *Engine, _ *model.Target) {
			db.Exec(ctx, t, "UPDATE counters SET hour = hour + 3600000000, units = 0")
		}},
		"repaired by hand": {used: used + 1, do: func(ctx context.Context, t *testing.T, db *testDB, _ *Engine, _ *model.Target) {
			db.Exec(ctx, t, "UPDATE counters SET at = at + 1")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
			here, there := db.startEngine(t, clock), db.startEngine(t, clock)
			limits := []*model.Limit{quotatest.Window(t, "a", 10, "1d"), quotatest.Bucket(t, "b", 10, "1d", 10)}
			target, theirs := quotatest.Target(1, 1, 1, limits...), quotatest.Target(1, 1, 1, limits...)
			for range used {
				if d, err := here.Decide(ctx, target, 1); err != nil || !d.Allowed {
					t.Fatal(d.String(), err)
				}
			}
			swaps := here.Stats().Swapped
			if swaps == 0 {
				t.Fatal("nothing was charged by a swap")
			}
			clock.Set(quotatest.Epoch + test.late)
			if test.do != nil {
				test.do(ctx, t, db, there, theirs)
			}
			d, err := here.Decide(ctx, target, 1)
			if err != nil || !d.Allowed || d.View(0).Used != test.used {
				t.Errorf("%s, %v; want %d units used", d.String(), err, test.used)
			}
			if lost := here.Stats().SwapsLost > 0; lost != (test.do != nil && !test.kept) {
				t.Errorf("a swap was lost: %v", lost)
			}
			// And then it fits no more, to the unit.
			if d, err = here.Decide(ctx, target, 10-test.used+1); err != nil || d.Allowed {
				t.Errorf("%s, %v; want a refusal", d.String(), err)
			}
			if d, err = there.Decide(ctx, theirs, 10-test.used); err != nil || !d.Allowed {
				t.Errorf("%s, %v; want all that is left", d.String(), err)
			}
		})
	}
}

// TestSwapAfterChange: a change number that was raised without a charge is seen, too.
func TestSwapAfterChange(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	here, there := db.startEngine(t, clock), db.startEngine(t, clock)
	limit := quotatest.Window(t, "a", 10, "1d")
	for range 2 {
		if d, err := here.Decide(ctx, quotatest.Target(1, 1, 1, limit), 1); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	if d, err := there.Decide(ctx, quotatest.Target(1, 1, 2, quotatest.Window(t, "a", 2, "1d")), 1); err != nil || d.Allowed {
		t.Fatal(d.String(), err)
	}
	var stale *model.StaleError
	if d, err := here.Decide(ctx, quotatest.Target(1, 1, 1, limit), 1); !errors.As(err, &stale) || stale.Change != 2 {
		t.Errorf("%s, %v; want it stale since 2", d.String(), err)
	}
}

// oneHitEach is a hit of two units for each of some customers, from 1 on.
func oneHitEach(customers int64, limits []*model.Limit) (hits []model.Hit) {
	for customer := range customers {
		hits = append(hits, model.Hit{Target: fireTarget(customer+1, limits), Cost: 2})
	}
	return hits
}

// Few rows that are not known are read beside the swaps of the others, which wait for no
// round trip of theirs; those that are not there are made.
func TestRowsAreReadBesideSwaps(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
	limits := []*model.Limit{quotatest.Limit(t, "w", "fixed_window", "1h", 10)}
	hits := oneHitEach(9, limits)
	if _, batches := e.sendBatch(ctx, hits[:8]); batches != 1 {
		t.Fatalf("%d batches for the first hits", batches)
	}
	hits[2].Target.Forget()
	hits[5].Target.Forget()
	before := e.Stats()
	results, batches := e.sendBatch(ctx, append(hits, hits[2]))
	for i, r := range results {
		used := int64(4)
		switch i {
		case 8: // its row was not there
			used = 2
		case 9: // behind another on the same counter
			used = 6
		}
		if r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != used {
			t.Errorf("hit %d: %s %v, want %d used", i, r.Decision.String(), r.Err, used)
		}
	}
	after := e.Stats()
	// Six swaps and three rows read; two more swaps, and the missing row is made.
	if batches != 2 || after.Batches-before.Batches != 2 || after.Swapped-before.Swapped != 8 || after.SwapsLost != 0 {
		t.Errorf("%d batches, before %+v, after %+v", batches, before, after)
	}
}

// When a swap fails for a row that somebody holds, what was read beside it is read again.
func TestReadingBesideAFailedSwap(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
	limits := []*model.Limit{quotatest.Limit(t, "w", "fixed_window", "1h", 1000)}
	hits := oneHitEach(4, limits)
	e.sendBatch(ctx, hits)
	hits[3].Target.Forget()
	db.HoldRow(ctx, t, 1, false)
	results, _ := e.sendBatch(ctx, hits) // until the server ends the session that holds the row
	for i, r := range results {
		if r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != 4 {
			t.Errorf("hit %d: %s %v", i, r.Decision.String(), r.Err)
		}
	}
	if s, err := e.Standings(ctx, []*model.Target{hits[3].Target}); err != nil || s[0].PeriodUsed != 4 {
		t.Errorf("%+v %v", s, err)
	}
}

// A row that cannot even be read, spoiled by hand, is the fault of its own hits only.
func TestRowThatCannotBeReadBesideSwaps(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
	limits := []*model.Limit{quotatest.Limit(t, "w", "fixed_window", "1h", 1000)}
	hits := oneHitEach(2, limits)
	e.sendBatch(ctx, hits)
	db.Exec(ctx, t, "UPDATE counters SET state[2] = NULL WHERE customer = 1")
	hits[0].Target.Forget()
	results, _ := e.sendBatch(ctx, hits)
	if errors.Is(results[0].Err, session.ErrOutcomeUnknown) || errors.Is(results[0].Err, session.ErrUnavailable) {
		t.Errorf("the spoiled row's: %v", results[0].Err)
	}
	if r := results[1]; r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != 4 {
		t.Errorf("the other's: %s %v", r.Decision.String(), r.Err)
	}
}

// What a decision says of a log stays what it is, whatever its counter is charged later.
func TestDecisionsKeepTheirLogs(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
	hits := oneHitEach(2, []*model.Limit{quotatest.Compile(t, model.Spec{Name: "l", Algorithm: "sliding_log", Limit: 100, Window: "1h", Precision: "1s"})})
	var decisions []model.Decision
	var said []string         // the log too
	for n := range int64(5) { // all in one block: the log is as long as before
		results, _ := e.sendBatch(ctx, hits)
		for _, r := range results {
			if r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != 2*(n+1) {
				t.Fatalf("%s %v", r.Decision.String(), r.Err)
			}
			decisions, said = append(decisions, r.Decision), append(said, r.Decision.String())
		}
	}
	if e.Stats().Swapped == 0 {
		t.Fatal("nothing was charged by a swap")
	}
	for i := range decisions {
		if now := decisions[i].String(); now != said[i] {
			t.Errorf("decision %d says %s, and said %s", i, now, said[i])
		}
	}
}

func clearOnce(t *testing.T, db *testDB, customers []int64, keepOwn bool, most int) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		_, err := upkeep.ClearCounters(t.Context(), tx, customers, keepOwn, most)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
