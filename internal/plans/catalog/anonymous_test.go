package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// isUnknown wants an error of Resolve.
func isUnknown(t *testing.T, what string, c *Catalog, customer, meter string, want error) {
	t.Helper()
	if _, err := c.Resolve(t.Context(), customer, meter, 0); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestCustomersAreMadeAtTheirFirstHit(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, one := openNode(t, url)
	_, two := openNode(t, url)
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(6))
	planstest.PutPlan(t, s, "free", planstest.Hourly(7))
	before := planstest.ChangeNumber(t, s)
	isUnknown(t, "a look", two, "x", "none", plans.ErrUnknownMeter)
	first := resolved(t, one, "x")
	if planstest.LimitOf(first) != 7 || first.Change != before || first.Clock != nil {
		t.Errorf("%+v", first)
	}
	// Nobody told the second node, which has asked for it before.
	if again := resolved(t, two, "x"); planstest.IDOf(again) != planstest.IDOf(first) || again.Change != first.Change {
		t.Errorf("another customer on the second node: %+v %+v", first, again)
	}
	x := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), "x"))
	if !x.Anonymous || x.Name != "" || x.Plan != "free" || x.Timezone != "UTC" || x.BillingAnchor != x.CreatedAt.Format("2006-01-02T15:04:05") &&
		x.BillingAnchor != x.CreatedAt.Add(time.Second).Format("2006-01-02T15:04:05") || x.EffectiveVersion != 2 {
		t.Errorf("%+v", x)
	}
	if account := planstest.Must[*Account](t)(two.Meters(t.Context(), "x")); !account.Anonymous {
		t.Error("not marked")
	}
	if planstest.ChangeNumber(t, s) != before {
		t.Error("a first hit took a change number")
	}
	// Who comes after another version has it; who was there has it, too.
	planstest.PutPlan(t, s, "free", planstest.Hourly(9))
	for _, c := range []*Catalog{one, two} {
		testkit.Eventually(t, "the new limit", func() bool { return planstest.LimitOf(resolved(t, c, "x")) == 9 })
		if got := planstest.LimitOf(resolved(t, c, fmt.Sprintf("z%p", c))); got != 9 {
			t.Errorf("a new customer has the limit %d", got)
		}
	}
}

// Looks make nobody, nor do hits that could not be judged.
func TestCustomersThatAreNotMade(t *testing.T) {
	t.Parallel()
	s, c := openNode(t, pgtest.NewDatabase(t))
	planstest.Declare(t, s, "api")
	planstest.Declare(t, s, "other")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	isUnknown(t, "no such meter", c, "x", "none", plans.ErrUnknownMeter)
	isUnknown(t, "a meter beside the plan", c, "x", "other", plans.ErrNotInPlan)
	for _, key := range []string{"", "a/b", "..", "é", plans.ErasedPrefix + "1"} {
		isUnknown(t, key, c, key, "api", plans.ErrUnknownCustomer)
	}
	for _, key := range []string{"", "a/b", plans.ErasedPrefix + "1"} {
		if _, err := c.Meters(t.Context(), key); !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Errorf("a look at %q: %v", key, err)
		}
	}
	// Who may come has what the first hit would find.
	account := planstest.Must[*Account](t)(c.Meters(t.Context(), "x"))
	if !account.Anonymous || account.Plan.Key != "free" || account.Clock != nil || len(account.Meters) != 1 || planstest.LimitOf(account.Meters[0].Target) != 5 {
		t.Errorf("a look at who may come: %+v", account)
	}
	if list := planstest.Must[*plans.List[*plans.Customer]](t)(s.ListCustomers(t.Context(), "", plans.Page{})); len(list.Items) > 0 {
		t.Fatalf("made without a hit: %+v", list.Items[0])
	}
}

func TestADefaultPlanMustBeThereAndFree(t *testing.T) {
	t.Parallel()
	s, c := openNode(t, pgtest.NewDatabase(t))
	planstest.Declare(t, s, "api")
	reason := func(what string, priced bool) {
		t.Helper()
		_, err := c.Resolve(t.Context(), "x", "api", 0)
		if why, ok := errors.AsType[*plans.NoDefaultPlanError](err); !ok || why.Priced != priced || why.Plan != "free" || !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Errorf("%s: %v", what, err)
		}
	}
	reason("no plan", false)
	priced := planstest.Hourly(5)
	priced.BasePriceMinor = 1
	planstest.PutPlan(t, s, "free", priced)
	reason("a base price", true)
	priced.BasePriceMinor, priced.MinimumMinor = 0, 1
	planstest.PutPlan(t, s, "free", priced)
	reason("a minimum", true)
	priced.MinimumMinor = 0
	priced.Prices = []plans.Price{{Meter: "api", Model: "per_unit", UnitPrice: planstest.Ptr("0.01")}}
	planstest.PutPlan(t, s, "free", priced)
	reason("a price", true)
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	resolved(t, c, "x")
}

// What is new is not missed because a node has heard nothing of it yet: neither a plan's
// newer version nor a first one.
func TestAFirstHitKnowsTheNewestPlan(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Declare(t, admin, "api")
	options := testOptions()
	options.DefaultPlan = "free"
	deaf := idleCatalog(t, url, options)
	for i := range int64(4) {
		if _, err := deaf.Resolve(t.Context(), fmt.Sprint("c", i), "api", 0); i == 0 && !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Errorf("without a plan: %v", err)
		}
		planstest.PutPlan(t, admin, "free", planstest.Hourly(i+1))
		if got := planstest.LimitOf(resolved(t, deaf, fmt.Sprint("d", i))); got != i+1 {
			t.Errorf("made with limit %d of version %d", got, i+1)
		}
	}
	// Also when the version is written between the look at the plan and the insert.
	old := planstest.Must[*version](t)(deaf.defaultVersion(t.Context(), deaf.memory.Load()))
	priced := planstest.Hourly(5)
	priced.BasePriceMinor = 1
	planstest.PutPlan(t, admin, "free", priced)
	done := planstest.Must[made](t)(deaf.insertAnonymous(t.Context(), deaf.memory.Load(), "e", old))
	if _, err := admin.GetCustomer(t.Context(), "e"); done.current || !errors.Is(err, plans.ErrUnknownCustomer) ||
		deaf.Applied() != planstest.ChangeNumber(t, admin) {
		t.Errorf("made on a version that is not the newest: %+v %v", done, err)
	}
	if _, err := deaf.Resolve(t.Context(), "e", "api", 0); !errors.Is(err, plans.ErrUnknownCustomer) {
		t.Errorf("made with a price: %v", err)
	}
}

// First hits of the same customers come to two nodes at the same time, while an admin
// writes some of them: one row each, and nobody fails.
func TestFirstHitsAtTheSameTime(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, one := openNode(t, url)
	_, two := openNode(t, url)
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	const customers, each = 20, 4
	ids := make([]sync.Map, customers)
	var running sync.WaitGroup
	for i := range customers {
		key := fmt.Sprint("c", i)
		for n := range 2 * each {
			running.Go(func() {
				target, err := []*Catalog{one, two}[n%2].Resolve(t.Context(), key, "api", 0)
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				ids[i].Store(planstest.IDOf(target), true)
			})
		}
		if i%2 == 0 {
			running.Go(func() {
				if _, _, err := s.PutCustomer(t.Context(), key, planstest.OnPlan("free"), plans.Precondition{None: i%4 == 0}); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			})
		}
	}
	running.Wait()
	for i := range customers {
		c := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), fmt.Sprint("c", i)))
		n := 0
		ids[i].Range(func(id, _ any) bool { n++; return id == c.ID })
		if n != 1 || c.Anonymous != (i%2 == 1) {
			t.Errorf("%s: %d ids, %+v", c.Key, n, c)
		}
	}
}

// The insert of a hit and that of an admin meet: whoever is second finds the other's.
func TestAPutMeetsAFirstHit(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := openNode(t, url)
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	// What makeCustomer does, held open: a PUT does not see it, and waits at its key.
	if _, err := tx.Exec(t.Context(), makeCustomer, "x", "free", 1, "2026-01-01T00:00:00"); err != nil {
		t.Fatal(err)
	}
	put := make(chan error, 1)
	var named *plans.Customer
	go func() {
		var err error
		named, _, err = s.PutCustomer(t.Context(), "x", planstest.OnPlan("free"), plans.Precondition{})
		put <- err
	}()
	testkit.Eventually(t, "the PUT to wait", func() bool {
		var waiting int
		err := c.pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'").Scan(&waiting)
		return err == nil && waiting > 0
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-put; err != nil {
		t.Fatal(err)
	}
	if named.Anonymous || named.Name != "Customer" || planstest.IDOf(resolved(t, c, "x")) != named.ID {
		t.Errorf("%+v", named)
	}
}

func TestAnAnonymousCustomerIsClaimed(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := openNode(t, url)
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	planstest.PutPlan(t, s, "pro", planstest.Hourly(50))
	for name, pre := range map[string]plans.Precondition{"none": {}, "only new": {None: true}, "any": planstest.AnyVersion} {
		before := resolved(t, c, name)
		named, created, err := s.PutCustomer(t.Context(), name, planstest.OnPlan("pro"), pre)
		if err != nil || created || named.Anonymous || named.ID != planstest.IDOf(before) || named.Change <= before.Change {
			t.Errorf("%s: %+v %v %v", name, named, created, err)
		}
		if after := resolved(t, c, name); planstest.IDOf(after) != named.ID || planstest.LimitOf(after) != 50 || after.Change <= before.Change {
			t.Errorf("%s: %+v", name, after)
		}
		if _, _, err := s.PutCustomer(t.Context(), name, planstest.OnPlan("pro"), plans.Precondition{}); !errors.Is(err, plans.ErrPreconditionRequired) {
			t.Errorf("%s, when it is named: %v", name, err)
		}
	}
	resolved(t, c, "stale")
	if _, _, err := s.PutCustomer(t.Context(), "stale", planstest.OnPlan("pro"), planstest.Match("0")); !errors.Is(err, plans.ErrPrecondition) {
		t.Errorf("another ETag: %v", err)
	}
	in := planstest.OnPlan("pro")
	planstest.SetClock(t, s, "c1", "2026-01-01T00:00:00Z")
	in.TestClock = planstest.Ptr("c1")
	if _, _, err := s.PutCustomer(t.Context(), "stale", in, plans.Precondition{}); planstest.Fields(err)[0] != "test_clock" {
		t.Errorf("from real time to a test clock: %v", err)
	}
}

// A flood of new customers is let in as far as it goes, and told to come again beyond.
func TestAFloodOfNewCustomersIsBounded(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := openNode(t, url)
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	resolved(t, c, "known")
	for range maxWelcomes {
		c.welcomes <- struct{}{}
	}
	if _, err := c.Resolve(t.Context(), "new", "api", 0); !errors.Is(err, session.ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	resolved(t, c, "known")
	<-c.welcomes
	resolved(t, c, "new")
	if len(c.welcomes) != maxWelcomes-1 {
		t.Errorf("%d places are taken", len(c.welcomes))
	}
}

// That a key is an archived customer's is remembered: its next hit costs no statement,
// and no place of those who are new.
func TestAnArchivedCustomerIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	_, other := openNode(t, url)
	options := testOptions()
	options.DefaultPlan = "free"
	c := idleCatalog(t, url, options)
	planstest.Declare(t, storeOf(c), "api")
	planstest.PutPlan(t, storeOf(c), "free", planstest.Hourly(5))
	resolved(t, c, "x")
	resolved(t, other, "x")
	if err := storeOf(c).ArchiveCustomer(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the archived one to be gone on the other node", func() bool {
		_, err := other.Resolve(t.Context(), "x", "api", 0)
		return errors.Is(err, plans.ErrUnknownCustomer)
	})
	for range maxWelcomes {
		c.welcomes <- struct{}{}
	}
	var before int64
	for i := range 3 {
		if _, err := c.Resolve(t.Context(), "x", "api", 0); !errors.Is(err, plans.ErrUnknownCustomer) {
			t.Errorf("resolved: %v", err)
		}
		if i == 0 {
			before = c.pool.Stat().AcquireCount()
		}
	}
	if n := c.pool.Stat().AcquireCount() - before; n != 0 {
		t.Errorf("%d statements", n)
	}
	for range maxWelcomes {
		<-c.welcomes
	}
	// Erased, the key is free for another.
	if _, err := storeOf(c).EraseCustomer(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	resolved(t, c, "x")
}

// An admin's write that takes its time holds no new customer up.
func TestFirstHitsDoNotWaitForAdmins(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := openNode(t, url)
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	err := s.Write(t.Context(), store.KindMeter, "api", func(ctx context.Context, _ *store.Writing) error {
		_, err := c.Resolve(ctx, "new", "api", 0) // what waited for the write would end with its deadline
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
