package catalog

import (
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/testkit/planstest"
)

// An override is gone before its end, and its rates with it.

func (r *rated) putEnding(t *testing.T, o plans.OverrideInput) (ends time.Time) { //nolint:gocritic // as the store takes it
	t.Helper()
	planstest.PutCustomer(t, r.store, "acme", planstest.OnPlan("basic"))
	ends = planstest.DatabaseNow(t, r.store).Add(30 * 24 * time.Hour).Truncate(time.Microsecond)
	o.ExpiresAt = &ends
	r.put(t, o)
	return ends
}

func TestRatesOfAnOverrideDeletedWhileNoBucket(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	r.putEnding(t, plans.OverrideInput{Limit: 0})
	planstest.PutPlan(t, r.store, "basic", planstest.Hourly(5))
	if err := r.store.DeleteOverride(t.Context(), "acme", "hourly"); err != nil {
		t.Fatal(err)
	}
	if n := planstest.Count(t, r.store, `count(*) FROM limit_rates`); n != 0 {
		t.Errorf("%d rows of a limit that is no token bucket", n)
	}
	planstest.PutPlan(t, r.store, "basic", rate(6))
	r.are(t, "a bucket again", 5, 6)
}

func TestRatesOfAnOverrideThatNoLongerFits(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	r.putEnding(t, plans.OverrideInput{Limit: 900_000_000_000_001, Burst: planstest.Ptr(int64(1_000_000))})
	next := rate(6)
	next.Limits[0].Window = "365d"
	planstest.PutPlan(t, r.store, "basic", next)
	r.are(t, "the plan's", 5, 6)
}
