package catalog

import (
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/planstest"
)

// A fence judges no cost, so it asks for no end of an override. A row that is ahead of the clock, past
// such an end, keeps no billing period from being closed.
func TestAFenceOfARowAheadOfTheClock(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	s, ctx := r.store, t.Context()
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("basic"))
	now := planstest.DatabaseNow(t, s)
	ends := now.Add(time.Hour)
	r.put(t, plans.OverrideInput{Limit: 50, ExpiresAt: &ends})
	c := r.nodes[0]
	if err := c.CatchUp(ctx, planstest.ChangeNumber(t, s)); err != nil {
		t.Fatal(err)
	}
	e := planstest.OpenEngine(t, r.url, s.Pool(), c.Fresh)
	target := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	if _, err := e.From("").Decide(ctx, target, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool().Exec(ctx, `UPDATE counters SET at = at + 7200000000`); err != nil {
		t.Fatal(err)
	}
	targets := planstest.Must[[]*model.Target](t)(c.Targets(ctx, []model.CounterKey{target.Counters[0].Key}))
	if errs := e.Fence(ctx, []locked.Fence{{Target: targets[0], Boundary: now.UnixMicro()}}); len(errs) != 1 || errs[0] != nil {
		t.Errorf("%v", errs)
	}
}
