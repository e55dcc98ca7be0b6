package quota

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestUnreadableReceipt: it fails its own operation, and nobody else's.
func TestUnreadableReceipt(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	l := quotatest.Window(t, "a", 10, "1h")
	one, two := quotatest.Target(1, 1, 1, l), quotatest.Target(2, 1, 1, l)
	for _, target := range []*model.Target{one, two} {
		if d, err := e.decideOnce(ctx, target, 1, model.NewID("hit", "x")); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	db.Exec(ctx, t, `UPDATE receipts_0 SET body = '\xff' WHERE customer = 1`)
	results := e.DecideAll(ctx, []model.Hit{
		{Target: one, Cost: 1, ID: model.NewID("hit", "x")},
		{Target: two, Cost: 1, ID: model.NewID("hit", "x")},
		{Target: one, Cost: 1, ID: model.NewID("hit", "y")},
	})
	if !errors.Is(results[0].Err, session.ErrInternal) || results[1].Err != nil || !results[1].Decision.Replayed || results[2].Err != nil {
		t.Errorf("%v, %v, %v", results[0].Err, results[1].Err, results[2].Err)
	}
}

// TestClearedReceipts: with a customer's counters its receipts go, which name values.
func TestClearedReceipts(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	for _, customer := range []int64{1, 2} {
		for i := range 5 {
			if d, err := e.decideOnce(ctx, quotatest.Target(customer, 1, 1), 1, model.NewID("hit", fmt.Sprint(i))); err != nil || !d.Allowed {
				t.Fatal(d.String(), err)
			}
		}
	}
	for _, left := range []int{7, 5, 5} {
		err := pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error {
			_, err := upkeep.ClearCounters(ctx, tx, []int64{1}, true, 3)
			return err
		})
		if n := rowsIn(t, db, "receipts_0"); err != nil || n != left {
			t.Errorf("%d receipts are left, want %d, %v", n, left, err)
		}
	}
}
