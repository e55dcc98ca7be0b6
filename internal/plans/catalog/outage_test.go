package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// The database goes away and comes back: what is in memory goes on being answered, and
// nothing claims to be fresh; afterwards changes are seen again.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	admin, c := newNode(t, server.URL())
	planstest.Populate(t, admin)
	ctx := t.Context()
	_, secret, err := admin.CreateKey(ctx, "k", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A change that the node hears of later takes what is remembered away.
	if err := c.CatchUp(ctx, planstest.ChangeNumber(t, admin)); err != nil {
		t.Fatal(err)
	}
	planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	server.Stop()
	testkit.Eventually(t, "a stale memory", func() bool { return !c.Fresh() })
	if age, contacted := c.Age(); age <= Freshness || !contacted || !c.FreshWithin(time.Hour) {
		t.Errorf("age %s, %v", age, contacted)
	}
	if target, err := c.Resolve(ctx, "acme", "api", 0); err != nil || planstest.LimitOf(target) != 5 {
		t.Errorf("from memory: %+v %v", target, err)
	}
	if _, err := c.Authenticate(ctx, secret, anyKey); err != nil {
		t.Errorf("a key from memory: %v", err)
	}
	_, miss := c.Resolve(ctx, "new", "api", 0)
	_, behind := c.Resolve(ctx, "acme", "api", c.Applied()+1)
	_, _, write := admin.PutPlan(ctx, "basic", planstest.Hourly(6), planstest.AnyVersion)
	_, read := admin.GetCustomer(ctx, "acme")
	_, list := admin.ListPlans(ctx, plans.Page{})
	for what, err := range map[string]error{"miss": miss, "behind": behind, "write": write, "read": read, "list": list} {
		if !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	server.Start()
	testkit.Eventually(t, "a fresh memory", c.Fresh)
	again := func(limit int64) {
		t.Helper()
		// Each connection that the pool had learns of its end by an error.
		testkit.Eventually(t, "a write that counts", func() bool {
			if _, _, err := admin.PutPlan(ctx, "basic", planstest.Hourly(limit), planstest.AnyVersion); err != nil {
				return false
			}
			target, err := c.Resolve(ctx, "acme", "api", 0)
			return err == nil && planstest.LimitOf(target) == limit
		})
	}
	again(70)
	server.Crash() // and its keeper starts it again
	again(71)
	testkit.Eventually(t, "a fresh memory", c.Fresh)
}

// A caller who gives up does not take those with him who wait for the same.
func TestACallerWhoGivesUp(t *testing.T) {
	t.Parallel()
	c := idleCatalog(t, pgtest.NewDatabase(t), testOptions())
	planstest.Populate(t, storeOf(c))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Resolve(gone, "acme", "api", 0); !errors.Is(err, context.Canceled) || errors.Is(err, session.ErrUnavailable) {
		t.Errorf("cancelled: %v", err)
	}
	planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
	if _, _, err := storeOf(c).PutMeter(gone, "x", plans.PutMeterInput{Unit: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a write: %v", err)
	}
	if _, err := storeOf(c).GetMeter(t.Context(), "x"); !errors.Is(err, plans.ErrUnknownMeter) {
		t.Errorf("it left %v", err)
	}
}
