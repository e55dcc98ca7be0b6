package quota

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"quotad/internal/postgres/pgtest"
)

// placedSwaps counts the last batch's swaps, and those of rows that were reached at their places.
func (e *Engine) placedSwaps() (all, placed int) {
	for i := range e.lanes[0].swaps {
		if all++; e.lanes[0].swaps[i].placed {
			placed++
		}
	}
	return all, placed
}

// wantUsed hits each customer once more and wants so many units used.
func wantUsed(ctx context.Context, t *testing.T, e *Engine, hits []Hit, used int64) {
	t.Helper()
	results, _ := e.sendBatch(ctx, hits)
	for i, r := range results {
		if r.Err != nil || !r.Decision.Allowed || r.Decision.View(0).Used != used {
			t.Fatalf("hit %d: %s %v, want %d used", i, r.Decision.brief(), r.Err, used)
		}
	}
}

// Rows are reached at their places from the first hit behind the one that made them, but now and
// then by their keys, so that pages are pruned and updates stay HOT.
func TestHitsAtPlaces(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	e := db.handEngine(t, newTestClock(testEpoch))
	hits := oneHitEach(300, []*Limit{limitOf(t, "w", "fixed_window", "1h", 1000), limitOf(t, "b", "token_bucket", "1d", 1000)})
	const rounds, batches = 12, 75
	atPlaces := 0
	for round := range int64(rounds) {
		for first := range batches { // some of each page
			var batch []Hit
			for i := first; i < len(hits); i += batches {
				batch = append(batch, hits[i])
			}
			wantUsed(ctx, t, e, batch, 2*(round+1))
			_, placed := e.placedSwaps()
			atPlaces += placed
		}
	}
	if all := len(hits) * (rounds - 1); atPlaces < all/2 || atPlaces > all*9/10 {
		t.Errorf("%d of %d swaps at their places", atPlaces, all)
	}
	s := e.Stats()
	if s.SwapsLost > 0 {
		t.Errorf("%d swaps were lost", s.SwapsLost)
	}
	if err := e.lanes[0].session.store.conn.Close(ctx); err != nil { // a session tells its statistics at its end
		t.Fatal(err)
	}
	all, hot := db.hotUpdates(ctx, t, int64(len(hits)*(rounds-1)))
	if hot*100 < all*99 {
		t.Errorf("%d of %d updates were HOT", hot, all)
	}
	var byKey int
	if err := db.pool.QueryRow(ctx, "SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'counters'").Scan(&byKey); err != nil {
		t.Fatal(err)
	}
	if most := len(hits)*rounds - atPlaces; byKey > most+len(hits) {
		t.Errorf("%d look-ups of keys, with %d swaps at their places", byKey, atPlaces)
	}
}

// What stands at a place that a lane knows may be another counter's row by now, the same in all
// but its key: it is left alone.
func TestPlacesOfOtherRows(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	e := db.handEngine(t, newTestClock(testEpoch))
	hits := oneHitEach(3, []*Limit{limitOf(t, "w", "fixed_window", "1h", 1000)})
	wantUsed(ctx, t, e, hits, 2)
	for i, key := range []string{"customer + 1000, meter, attribute", "customer, meter + 1, attribute", "customer, meter, 'a=b'"} {
		var at pgtype.TID
		err := db.pool.QueryRow(ctx, `INSERT INTO counters (customer, meter, attribute, shard, at, hour, units, total, version, change, state)
			SELECT `+key+`, shard, at, hour, units, total, version, change, state FROM counters WHERE customer = $1 RETURNING ctid`, i+1).Scan(&at)
		if err != nil {
			t.Fatal(err)
		}
		e.room.pages[0].left = mostBehind
		hits[i].Target.known.row.place = place(at.BlockNumber)<<16 | place(at.OffsetNumber)
		wantUsed(ctx, t, e, hits[i:i+1], 4)
		var version int64
		if err := db.pool.QueryRow(ctx, "SELECT version FROM counters WHERE ctid = $1", at).Scan(&version); err != nil || version != 1 {
			t.Errorf("%s: the other row's version is %d, %v", key, version, err)
		}
		if lost := e.Stats().SwapsLost; lost != int64(i+1) {
			t.Errorf("%s: %d swaps were lost: the place was not looked at", key, lost)
		}
	}
}

// A table that was written anew has its rows at other places.
func TestRowsThatMoved(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	e := db.handEngine(t, newTestClock(testEpoch))
	hits := oneHitEach(50, []*Limit{limitOf(t, "w", "fixed_window", "1h", 1000)})
	for round := range int64(4) {
		wantUsed(ctx, t, e, hits, 4*round+2)
		wantUsed(ctx, t, e, hits, 4*round+4)
		execSQL(ctx, t, db, "VACUUM FULL counters")
		if round == 1 {
			execSQL(ctx, t, db, "CLUSTER counters USING counters_pkey")
		}
	}
	if e.Stats().SwapsLost == 0 {
		t.Error("no row had moved")
	}
}

// Of a page's rows the first of a batch is reached by its key when the page has no room for all
// of them, or nothing is known of it, or another page was counted where it would be.
func TestRoomOfPages(t *testing.T) {
	at := func(page, line int64) place { return place(page<<16 | line) }
	const far = 5 + 1<<16 // counted where 5 is
	r := new(pageRoom)
	for i, batch := range []struct {
		rows []place
		want string // p: at its place, k: by its key
	}{
		{[]place{at(5, 1), at(6, 1), 0}, "kkk"},
		{[]place{at(5, 2)}, "p"},
		{[]place{at(5, 1), at(6, 1)}, "pp"},
		{[]place{at(5, 1), at(6, 1)}, "kp"},
		{[]place{at(5, 1), at(6, 1), at(5, 2)}, "pkp"},
		{[]place{at(5, 1), at(6, 1), at(6, 2), at(6, 3), at(6, 4), at(6, 5)}, "kkpppp"},
		{[]place{at(6, 1)}, "k"},
		{[]place{at(far, 1)}, "k"},
		{[]place{at(far, 1), at(far, 2)}, "pp"},
		{[]place{at(5, 1)}, "k"},
		{[]place{at(5, 1), at(far, 1)}, "kk"},
	} {
		swaps := make([]swap, len(batch.rows))
		for i, at := range batch.rows {
			swaps[i].group = &group{known: knownRow{place: at}}
		}
		r.choose(swaps)
		got := ""
		for i := range swaps {
			got += map[bool]string{true: "p", false: "k"}[swaps[i].placed]
		}
		if got != batch.want {
			t.Errorf("batch %d: %s, not %s", i, got, batch.want)
		}
	}
	long := swap{group: &group{known: knownRow{place: at(6, 1), row: row{state: make([]int64, mostPlaced+1)}}}}
	for range 3 {
		if r.choose([]swap{long}); long.placed {
			t.Error("a long row is reached at its place")
		}
	}
}
