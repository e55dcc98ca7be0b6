package upkeep

import (
	"context"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// Rows go that are of long ago and were written long ago, in pieces; others stay, also of a
// customer whose test clock shows another time.
func TestTrim(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	const day = int64(86400e6)
	fill := func(customer, from, step, n, written int64) {
		t.Helper()
		_, err := db.Pool.Exec(ctx, `INSERT INTO refusals (shard, customer, meter, minute, limit_name, first_at, last_at, units, written_at)
			SELECT $1, $2, 1 + n % 2, $3::bigint - n * $4::bigint, 'l' || n % 3, 0, 0, 1, $6 FROM generate_series(1, $5::bigint) n`,
			model.Shard(customer), customer, from, step, n, written)
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(1, quotatest.Epoch-30*day, 60e6, trimRows+500, quotatest.Epoch-30*day-1)
	fill(1, quotatest.Epoch-30*day+700*60e6, 60e6, 700, quotatest.Epoch) // younger
	fill(2, quotatest.Epoch-300*day, 60e6, 10, quotatest.Epoch-day)      // by a test clock of the past
	fill(3, quotatest.Epoch+300*day, 60e6, 10, quotatest.Epoch-60*day)   // of the future
	trimmer := NewTrimmer(db.Pool, clock.Now, func() bool { return true }, nil)
	trimmer.limit = testkit.Patience
	again := 0
	for i := range 2 * model.Shards {
		more, err := trimmer.step(ctx)
		if err != nil {
			t.Fatal(i, err)
		}
		if more {
			again++
		}
	}
	if n := rowsIn(t, db, "refusals"); n != 720 || again != 1 {
		t.Errorf("%d rows are left, %d times there was more", n, again)
	}
	clock.Set(quotatest.Epoch + 31*day)
	for range 2 * model.Shards {
		if _, err := trimmer.step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := rowsIn(t, db, "refusals WHERE customer = 3"); rowsIn(t, db, "refusals") != n || n != 10 {
		t.Errorf("%d rows of the future, %d in all", n, rowsIn(t, db, "refusals"))
	}
}

// Many customers of one shard are looked at some at a time, and an unusable database not at all.
func TestTrimGoesThroughAShard(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	if _, err := db.Pool.Exec(ctx, `INSERT INTO refusals (shard, customer, meter, minute, limit_name, first_at, last_at, units, written_at)
		SELECT 7, n, 1, n % 2 * $2::bigint, 'l', 0, 0, 1, 0 FROM generate_series(1, $1) n`, 2*trimKeys+10, quotatest.Epoch); err != nil {
		t.Fatal(err)
	}
	usable := false
	trimmer := NewTrimmer(db.Pool, clock.Now, func() bool { return usable }, nil)
	trimmer.limit = testkit.Patience
	trimmer.shard = 7
	if _, err := trimmer.step(context.Background()); err != nil || rowsIn(t, db, "refusals") != 2*trimKeys+10 {
		t.Errorf("it works on a database out of reach: %v", err)
	}
	usable = true
	for steps := 0; trimmer.shard == 7; steps++ {
		if steps > 3 {
			t.Fatal("it does not come to an end")
		}
		if _, err := trimmer.step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := rowsIn(t, db, "refusals"); n != trimKeys+5 {
		t.Errorf("%d are left", n)
	}
}
