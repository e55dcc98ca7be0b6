package quota

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/postgres/pgtest"
)

// What a target learns is what another knew, to the last field; under another change number
// it learns nothing.
func TestKnownRowComesBack(t *testing.T) {
	limits := []*Limit{
		limitOf(t, "w", "fixed_window", "1h", 1000),
		limitOf(t, "m", "fixed_window", "billing_period", 1000),
		limitOf(t, "b", "token_bucket", "1h", 1000),
		limitOf(t, "s", "sliding_window", "1h", 1000),
		mustCompile(t, Spec{Name: "f", Algorithm: "fixed_window", Limit: 9, Window: "45s", Align: "first_hit"}),
		mustCompile(t, Spec{Name: "a", Algorithm: "allocation", Limit: 9}),
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64()
		instant := rapid.Int64Range(testEpoch, testEpoch+1e15)
		since := instant.Draw(t, "since")
		target := fireTarget(1, limits[:rapid.IntRange(0, len(limits)).Draw(t, "limits")])
		target.Change = rapid.Int64Min(1).Draw(t, "change")
		r := &knownRow{counted: true}
		r.at, r.version, r.change = instant.Draw(t, "at"), rapid.Int64Min(1).Draw(t, "version"), target.Change
		r.hour, _ = target.runningHour(r.at)
		for _, l := range target.Counters[0].Limits {
			r.state = append(r.state, l.id(target.moment(r.at)), number.Draw(t, "level"), number.Draw(t, "aux"))
		}
		target.known.Store(r)
		b := target.AppendRow([]byte("x"), since)
		if len(b) == 1 || b[0] != 'x' {
			t.Fatalf("%q is appended", b)
		}
		like := fireTarget(1, target.Counters[0].Limits)
		like.Change = target.Change
		like.LearnRow(b[1:], since)
		got := like.known.Load()
		if got == nil || got.at != r.at || got.version != r.version || got.change != r.change || got.hour != r.hour || !got.counted || !slices.Equal(got.state, r.state) {
			t.Errorf("%+v is learned, not %+v", got, r)
		}
		other := fireTarget(1, target.Counters[0].Limits)
		other.Change = target.Change - 1
		if other.LearnRow(b[1:], since); other.known.Load() != nil {
			t.Error("learned under another change number")
		}
	})
}

// What does not fit in the few bytes is not told: the next hit reads it.
func TestWhatOfKnownRowsIsNotTold(t *testing.T) {
	window, log := limitOf(t, "w", "fixed_window", "1h", 1000), limitOf(t, "l", "sliding_log", "1h", 1000)
	state := []int64{window.ID, 1, 1}
	hour := testEpoch
	for name, test := range map[string]struct {
		limits []*Limit
		row    *knownRow
	}{
		"nothing":                       {[]*Limit{window}, nil},
		"that it is large":              {[]*Limit{window}, &knownRow{large: true}},
		"units of no hour":              {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour}},
		"another hour":                  {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour - 1, counted: true}},
		"another change":                {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 2, state: state}, hour: hour, counted: true}},
		"a bucket less":                 {[]*Limit{window, window}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour, counted: true}},
		"a bucket more":                 {nil, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour, counted: true}},
		"another limit's bucket":        {[]*Limit{limitOf(t, "x", "fixed_window", "2h", 1)}, &knownRow{row: row{at: testEpoch, change: 1, state: state}, hour: hour, counted: true}},
		"an empty log, which may grow":  {[]*Limit{log}, &knownRow{row: row{at: testEpoch, change: 1, state: []int64{log.ID, 0, 0}}, hour: hour, counted: true}},
		"reservations that hold of it":  {[]*Limit{window}, &knownRow{row: row{at: testEpoch, change: 1, state: append([]int64{heldMark, 5, 0}, state...)}, hour: hour, counted: true}},
		"reservations, and limits more": {[]*Limit{window, window}, &knownRow{row: row{at: testEpoch, change: 1, state: append([]int64{heldMark, 5, 0}, state...)}, hour: hour, counted: true}},
	} {
		target := fireTarget(1, test.limits)
		target.known.Store(test.row)
		if b := target.AppendRow(nil, testEpoch); len(b) > 0 {
			t.Errorf("%s: %x is told", name, b)
		}
	}
}

// Few rows that are not known are read beside the swaps of the others, which wait for no
// round trip of theirs; those that are not there are made.
func TestRowsAreReadBesideSwaps(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	e := db.handEngine(t, newTestClock(testEpoch))
	limits := []*Limit{limitOf(t, "w", "fixed_window", "1h", 10)}
	var hits []Hit
	for customer := range int64(9) {
		hits = append(hits, Hit{Target: fireTarget(customer+1, limits), Cost: 2})
	}
	if _, batches := e.sendBatch(ctx, hits[:8]); batches != 1 {
		t.Fatalf("%d batches for the first hits", batches)
	}
	hits[2].Target.forget()
	hits[5].Target.forget()
	before := e.Stats()
	results, batches := e.sendBatch(ctx, append(hits, hits[2]))
	for i, r := range results {
		used := int64(4)
		switch i {
		case 8: // its row was not there
			used = 2
		case 2, 9: // one batch, and so one instant
			used = 6
		}
		if r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != used && i != 2 {
			t.Errorf("hit %d: %s %v, want %d used", i, r.Decision.brief(), r.Err, used)
		}
	}
	after := e.Stats()
	// Six swaps and three rows read; the missing one; two more swaps.
	if batches != 2 || after.Batches-before.Batches != 3 || after.Swapped-before.Swapped != 8 || after.SwapsLost != 0 {
		t.Errorf("%d batches, before %+v, after %+v", batches, before, after)
	}
}

// When a swap fails for a row that somebody holds, what was read beside it is read again.
func TestReadingBesideAFailedSwap(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	e := db.handEngine(t, newTestClock(testEpoch))
	limits := []*Limit{limitOf(t, "w", "fixed_window", "1h", 1000)}
	var hits []Hit
	for customer := range int64(4) {
		hits = append(hits, Hit{Target: fireTarget(customer+1, limits), Cost: 2})
	}
	e.sendBatch(ctx, hits)
	hits[3].Target.forget()
	tx, err := db.session(t).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT FROM counters WHERE customer = 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	results, _ := e.sendBatch(ctx, hits)
	for i, r := range results[1:] {
		if r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != 4 {
			t.Errorf("hit %d: %s %v", i+1, r.Decision.brief(), r.Err)
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if s, err := e.Standings(ctx, []*Target{hits[3].Target}); err != nil || s[0].PeriodUsed != 4 {
		t.Errorf("%+v %v", s, err)
	}
}

// A row that cannot even be read, spoiled by hand, is the fault of its own hits only.
func TestRowThatCannotBeReadBesideSwaps(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	e := db.handEngine(t, newTestClock(testEpoch))
	limits := []*Limit{limitOf(t, "w", "fixed_window", "1h", 1000)}
	hits := []Hit{{Target: fireTarget(1, limits), Cost: 2}, {Target: fireTarget(2, limits), Cost: 2}}
	e.sendBatch(ctx, hits)
	execSQL(ctx, t, db, "UPDATE counters SET state[2] = NULL WHERE customer = 1")
	hits[0].Target.forget()
	results, _ := e.sendBatch(ctx, hits)
	if errors.Is(results[0].Err, ErrOutcomeUnknown) || errors.Is(results[0].Err, ErrUnavailable) {
		t.Errorf("the spoiled row's: %v", results[0].Err)
	}
	if r := results[1]; r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != 4 {
		t.Errorf("the other's: %s %v", r.Decision.brief(), r.Err)
	}
}
