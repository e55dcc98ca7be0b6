package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// One counter whose statement the database refuses (its row was spoiled by hand) must
// not fail the hits of others in its batch, and is no outage.
func TestOneFaultFailsNoOther(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	bucket := quotatest.Limit(t, "b", "token_bucket", "1h", 1000)
	spoiled, whole := fireTarget(1, []*model.Limit{bucket}), fireTarget(2, []*model.Limit{bucket})
	for _, target := range []*model.Target{spoiled, whole} {
		if d, err := e.Decide(ctx, target, 1); err != nil || !d.Allowed {
			t.Fatalf("%+v %v", d, err)
		}
	}
	db.Exec(ctx, t, "UPDATE counters SET state[3] = 0, version = version + 1 WHERE customer = 1") // a division by zero
	results := e.DecideAll(ctx, []model.Hit{{Target: spoiled, Cost: 1}, {Target: whole, Cost: 2}, {Target: spoiled, Cost: 1}, {Target: whole, Cost: 3}})
	for i, r := range results {
		switch {
		case i%2 == 0 && !errors.Is(r.Err, session.ErrInternal):
			t.Errorf("hit %d: %v, want an internal error", i, r.Err)
		case i%2 == 1 && (r.Err != nil || !r.Decision.Allowed):
			t.Errorf("hit %d: %+v", i, r)
		}
	}
	if d, err := e.Look(ctx, whole, 0); err != nil || d.View(0).Used != 6 {
		t.Errorf("%+v %v", d, err)
	}
}

// Nor may one whose row is more than the model can read.
func TestUnreadableRowFailsNoOther(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	log := quotatest.Limit(t, "b", "sliding_log", "1h", 1000)
	spoiled, whole := fireTarget(1, []*model.Limit{log}), fireTarget(2, []*model.Limit{log})
	for _, target := range []*model.Target{spoiled, whole} {
		if d, err := e.Decide(ctx, target, 1); err != nil || !d.Allowed {
			t.Fatalf("%+v %v", d, err)
		}
	}
	// A log that ends before its end.
	db.Exec(ctx, t, "UPDATE counters SET state = ARRAY[state[1], 1, 100, 0], version = version + 1 WHERE customer = 1")
	spoiled.Forget()
	results := e.DecideAll(ctx, []model.Hit{{Target: spoiled, Cost: 1}, {Target: whole, Cost: 2}})
	if r := results[0]; !errors.Is(r.Err, session.ErrInternal) {
		t.Errorf("the spoiled row's: %+v", r)
	}
	if r := results[1]; r.Err != nil || !r.Decision.Allowed {
		t.Errorf("the other's: %+v", r)
	}
}

// What is counted without a limit stops at 2⁶³−1 and does not fail.
func TestCountsEndAt63Bits(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	hits := make([]model.Hit, 9300)
	e := db.startEngine(t, clock, func(o *Options) { o.MaxQueue = 2 * len(hits) })
	target := fireTarget(1, nil)
	for i := range hits {
		hits[i] = model.Hit{Target: target, Cost: model.MaxNumber}
	}
	clock.Set(quotatest.Epoch + 3600e6) // and once more when the hour is booked
	for range 2 {
		for i, r := range e.DecideAll(ctx, hits) {
			if r.Err != nil || !r.Decision.Allowed {
				t.Fatalf("hit %d: %+v", i, r)
			}
		}
	}
	s, err := e.Standings(ctx, []*model.Target{target})
	if err != nil || s[0].PeriodUsed != 1<<63-1 {
		t.Errorf("%+v %v", s, err)
	}
}

// A row that somebody holds stops its own hits only, and a hit whose caller gave up while
// it waited is not charged later.
func TestHeldRowStopsNoOther(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	limits := []*model.Limit{quotatest.Limit(t, "w", "fixed_window", "1h", 1000)}
	held, free := fireTarget(1, limits), fireTarget(2, limits)
	for _, target := range []*model.Target{held, free} {
		if _, err := e.Decide(ctx, target, 1); err != nil {
			t.Fatal(err)
		}
	}
	tx := db.HoldRow(ctx, t, 1, true)
	impatient, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := e.Decide(impatient, held, 5); !errors.Is(err, session.ErrOutcomeUnknown) && !errors.Is(err, session.ErrBusy) {
			t.Errorf("who gave up was told %v", err)
		}
	})
	wg.Go(func() {
		patient, cancel := context.WithTimeout(ctx, 1800*time.Millisecond)
		defer cancel()
		if d, err := e.Decide(patient, held, 7); !errors.Is(err, session.ErrOutcomeUnknown) && !errors.Is(err, session.ErrBusy) {
			t.Errorf("a hit on the held row: %+v %v", d, err)
		}
	})
	for range 3 {
		if d, err := e.Decide(ctx, free, 1); err != nil || !d.Allowed {
			t.Errorf("another customer's hit: %+v %v", d, err)
		}
	}
	wg.Wait()
	// What was told as unknown may be charged while its statement is under way. After that nothing
	// is. A busy server begins a statement late, so one look at it is not enough.
	const underWay = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND pid <> %d AND state <> 'idle'`
	quiet := 0
	testkit.Eventually(t, "no statement and no transaction but the holder's is under way", func() bool {
		if quiet++; pgtest.Query[int](t, db.URL, fmt.Sprintf(underWay, tx.Conn().PgConn().PID())) > 0 {
			quiet = 0
		}
		return quiet == 20
	})
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if d, err := e.Decide(ctx, held, 2); err != nil || !d.Allowed || d.View(0).Used != 3 {
		t.Errorf("after the lock was gone: %+v %v", d, err)
	}
}

// A database that swallows connections without a word is an outage at once, and what
// was never sent is not called unknown.
func TestSilentDatabaseIsAnOutage(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	over := make(chan struct{})
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch), impatient, func(o *Options) {
		o.Connect = func(context.Context) (*pgx.Conn, error) { // no attempt ends
			<-over
			return nil, context.Canceled
		}
	})
	t.Cleanup(func() { close(over) })
	target := fireTarget(1, nil)
	for range 3 {
		if _, err := e.Decide(ctx, target, 1); !errors.Is(err, session.ErrUnavailable) {
			t.Error(err)
		}
	}
	impatient, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := e.Decide(impatient, target, 1); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("who gave up was told %v", err)
	}
}

// Each of these runs admits one hit and refuses one: progress, however often.
func TestManyShortRuns(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	target := fireTarget(1, []*model.Limit{quotatest.Limit(t, "w", "fixed_window", "1h", 1000)})
	var hits []model.Hit
	for i := range int64(500) {
		hits = append(hits, model.Hit{Target: target, Cost: 1}, model.Hit{Target: target, Cost: 1000 - i})
	}
	for i, r := range e.DecideAll(ctx, hits) {
		if r.Err != nil || r.Decision.Allowed != (i%2 == 0) {
			t.Fatalf("hit %d: %+v", i, r)
		}
	}
	if batches := e.Stats().Batches; batches > 10 {
		t.Errorf("%d batches for a thousand hits of one customer", batches)
	}
}

// A look between hits sees what those before it were charged, and nothing of those after.
func TestLooksKeepTheirPlace(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	target := fireTarget(1, []*model.Limit{quotatest.Limit(t, "w", "fixed_window", "1h", 1000)})
	look := model.Hit{Target: target, Cost: 1000, Look: true}
	results := e.DecideAll(ctx, []model.Hit{look, {Target: target}, {Target: target, Cost: 3}, look, {Target: target}, {Target: target, Cost: 4}, look})
	for i, used := range []int64{0, 0, 3, 3, 3, 7, 7} {
		r := results[i]
		if r.Err != nil || r.Decision.View(0).Used != used || r.Decision.Allowed != (i != 3 && i != 6) {
			t.Errorf("hit %d: %+v, want used %d", i, r, used)
		}
	}
}
