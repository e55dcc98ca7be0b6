package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"quotad/internal/cache"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// A reading that a change overtook on its way is not kept, and not believed where it is
// kept already.
func TestLateInsertsDoNotUndoAnInvalidation(t *testing.T) {
	m := newMemory(1, 10, newPacking(defaultPacked))
	at := func(asOf int64) *planEntry {
		return &planEntry{fact: m.fact(store.KindPlan, "basic", asOf), all: int(asOf)}
	}
	kept := func() int {
		if e, ok := m.plans.Get("basic", 0); ok {
			return e.all
		}
		return 0
	}
	early, late := at(5), at(6)
	m.apply(change{number: 6, kind: store.KindPlan, key: "basic"})
	remember(m.plans, "basic", early)
	if kept() != 0 || early.valid() || !late.valid() {
		t.Errorf("kept %d after change 6", kept())
	}
	remember(m.plans, "basic", late)
	remember(m.plans, "basic", at(8))
	remember(m.plans, "basic", at(7))
	if kept() != 8 {
		t.Errorf("kept %d, not the newest reading", kept())
	}
	m.apply(change{number: 9, kind: store.KindPlan, key: "other"})
	m.apply(change{number: 10, kind: store.KindCustomer, key: "basic"})
	if kept() != 8 {
		t.Error("forgotten by a change of something else")
	}
	evicted := at(8)
	m.plans.Add("basic", evicted, cache.NoExpiry)
	m.plans.Remove("basic")
	m.apply(change{number: 11, kind: store.KindPlan, key: "basic"})
	if evicted.valid() {
		t.Error("what was evicted before the change is still believed by who holds it")
	}
}

// A reading that is under way when a change is applied is of no use to who asks after
// it, even if he joins it; and not to who asked before, as it would be kept for later.
func TestAJoinedReadingIsNotOlderThanTheQuestion(t *testing.T) {
	c := New(nil, testOptions()) // asks no database
	m := c.memory.Load()
	m.contacted = true
	m.applied.Store(5)
	reading, release := make(chan struct{}), make(chan struct{})
	var loads atomic.Int64
	ask := func() (*planEntry, error) {
		return recall(t.Context(), c, m, store.KindPlan, "basic",
			func() (*planEntry, bool) { return m.plans.Get("basic", 0) },
			func(e *planEntry) { remember(m.plans, "basic", e) },
			func(context.Context) (*planEntry, error) {
				asOf := m.applied.Load()
				if loads.Add(1) == 1 {
					close(reading)
					<-release
				}
				return &planEntry{fact: m.fact(store.KindPlan, "basic", asOf), all: int(asOf)}, nil
			})
	}
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() {
			if e, err := ask(); err != nil || e.all != 6 {
				t.Errorf("got %+v, %v", e, err)
			}
		})
		if i == 0 { // the others ask after the change
			<-reading
			m.apply(change{number: 6, kind: store.KindPlan, key: "basic"})
			m.applied.Store(6)
		}
	}
	close(release)
	asking.Wait()
	if n := loads.Load(); n < 2 || n > 5 {
		t.Errorf("%d readings", n)
	}
}

// When a node says that a change is applied, it is: also in the middle of a long page.
func TestAppliedMeansApplied(t *testing.T) {
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	c := idleCatalog(t, url, testOptions())
	var number, limit atomic.Int64 // of the last change of the plan
	limit.Store(5)
	planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
	var done atomic.Bool
	var asking sync.WaitGroup
	defer asking.Wait()
	defer done.Store(true)
	asking.Go(func() {
		for !done.Load() {
			want := limit.Load()
			if c.Applied() < number.Load() {
				continue
			}
			if target, err := c.Resolve(t.Context(), "acme", "api", 0); err != nil || planstest.LimitOf(target) < want {
				t.Errorf("applied, but the limit is %d, not %d; %v", planstest.LimitOf(target), want, err)
				return
			}
		}
	})
	for round := range int64(40) {
		if _, err := admin.Pool().Exec(t.Context(), `
			INSERT INTO changes SELECT n, 'customer', 'c' || n FROM change_number, generate_series(number + 1, number + 900) n;
			UPDATE change_number SET number = number + 900`); err != nil {
			t.Fatal(err)
		}
		number.Store(planstest.ChangeNumber(t, admin) + 1)
		limit.Store(100 + round)
		planstest.PutPlan(t, admin, "basic", planstest.Hourly(100+round))
		if _, err := c.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// While a plan is being read, its customer moves away and then the plan changes: what
// was known of the customer is not put together with what is now read of the plan.
func TestAMoveWhileThePlanIsRead(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	planstest.PutPlan(t, admin, "other", planstest.Hourly(9))
	c := idleCatalog(t, url, testOptions())
	if err := c.CatchUp(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
	planstest.PutPlan(t, admin, "basic", planstest.Hourly(6)) // so that the plan, and only it, is read again
	if err := c.CatchUp(t.Context(), planstest.ChangeNumber(t, admin)); err != nil {
		t.Fatal(err)
	}
	tx, err := admin.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	exec := func(statement string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("LOCK TABLE plan_versions")
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		target, err := c.Resolve(t.Context(), "acme", "api", 0)
		if err != nil || planstest.LimitOf(target) != 9 || target.Change != 6 {
			t.Errorf("resolved %+v, %v", target, err)
		}
	})
	testkit.Eventually(t, "the reader at the lock", func() (waits bool) {
		if err := admin.Pool().QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	exec(`UPDATE customers SET plan_id = (SELECT id FROM plans WHERE key = 'other'), change = 6 WHERE key = 'acme'`)
	exec(`INSERT INTO plan_versions (plan_id, version, apply_to, document, change, base_every)
		SELECT plan_id, 3, 'all', document, 7, base_every FROM plan_versions WHERE change = 5`)
	exec(`INSERT INTO changes VALUES (6, 'customer', 'acme'), (7, 'plan', 'basic')`)
	exec(`UPDATE change_number SET number = 7`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
