package upkeep

import (
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestRotator: an id is known through two turns of the tables, so for as long as it is to
// be kept whenever it was written, and gone after the third. Two nodes rotate once.
func TestRotator(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(0)
	e := db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 100}))
	const keep = 48 * time.Hour
	turnOf := (keep / 2).Microseconds() + rotateEvery.Microseconds()
	rotators := []*Rotator{NewRotator(db.Pool, clock.Now, keep, nil), NewRotator(db.Pool, clock.Now, keep, nil)}
	for _, r := range rotators { // nobody holds the tables for long
		r.limit, r.lockWait = testkit.Patience, "2min"
	}
	var start int64
	if err := db.Pool.QueryRow(ctx, "SELECT since FROM receipt_turn").Scan(&start); err != nil {
		t.Fatal(err)
	}
	id := model.NewID("hit", "one", "")
	for turn := range int64(4) {
		for _, c := range []struct {
			at       int64
			rotates  bool
			replayed bool
		}{
			{turn*turnOf - 1, false, turn > 0},
			{turn * turnOf, turn > 0, turn < 3},
		} {
			clock.Set(start + c.at)
			for i, r := range rotators {
				if done, err := r.rotate(ctx); err != nil || done != (c.rotates && i == 0) {
					t.Fatalf("turn %d: rotator %d: %v, %v", turn, i, done, err)
				}
			}
			d, err := decideOnce(ctx, e, target, 1, id)
			if err != nil || !d.Allowed || d.Replayed != c.replayed {
				t.Fatalf("turn %d at %d: %s, %v", turn, c.at, d.String(), err)
			}
		}
	}
}

// TestRotatorWaitsForNobodyLong: somebody reads the table whose turn it is.
func TestRotatorWaitsForNobodyLong(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(time.Now().Add(2*time.Hour).UnixMicro())
	r := NewRotator(db.Pool, clock.Now, time.Hour, nil)
	r.limit = testkit.Patience
	reader, err := db.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(ctx) }()
	if _, err := reader.Exec(ctx, "SELECT count(*) FROM receipts_1"); err != nil {
		t.Fatal(err)
	}
	if done, err := r.rotate(ctx); session.StateOf(err) != lockTimeout || done {
		t.Fatal(done, err)
	}
	if err := reader.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r.lockWait = "2min"
	if done, err := r.rotate(ctx); err != nil || !done {
		t.Fatal(done, err)
	}
}
