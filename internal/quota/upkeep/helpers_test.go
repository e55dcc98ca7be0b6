package upkeep

import (
	"context"
	"testing"
	"time"

	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// testDB is a database of the test's own, on which engines can be started.
type testDB struct{ *quotatest.DB }

func newTestDB(t testing.TB) *testDB { return &testDB{quotatest.NewDB(t)} }

func (db *testDB) options(c *quotatest.Clock) quota.Options {
	start := time.Now()
	return quota.Options{
		Connect: db.Connect, Pool: db.Pool, Now: c.Now, Wall: time.Now,
		Stopwatch: func() time.Duration { return time.Since(start) }, Patience: testkit.Patience,
	}
}

// startEngine starts one of any number of engines on the database; it ends with the test.
func (db *testDB) startEngine(t testing.TB, c *quotatest.Clock, change ...func(*quota.Options)) *quota.Engine {
	t.Helper()
	o := db.options(c)
	for _, f := range change {
		f(&o)
	}
	e, err := quota.NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// withoutMemory has every hit decided by a statement.
func withoutMemory(o *quota.Options) { o.MemoryUsable = func() bool { return false } }

// decideOnce decides a hit under an id.
func decideOnce(ctx context.Context, e *quota.Engine, t *model.Target, cost int64, id model.ID) (model.Decision, error) {
	r := e.DecideAll(ctx, []model.Hit{{Target: t, Cost: cost, ID: id}})[0]
	return r.Decision, r.Err
}

func rowsIn(t testing.TB, db *testDB, table string) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(context.Background(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// lockTimeout is the SQLSTATE of a lock that was waited for for its time in vain.
const lockTimeout = "55P03"

type shot struct{ model.Decision }
