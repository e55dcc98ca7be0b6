package catalog

import (
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// A ttl of exactly what a limit counts for is enough, and a microsecond less is not.
func TestOutlasting(t *testing.T) {
	t.Parallel()
	s, c := openNode(t, pgtest.NewDatabase(t))
	planstest.Declare(t, s, "api")
	if limit, _ := c.Outlasting(t.Context(), time.Minute); limit != "" {
		t.Errorf("without a plan: %s", limit)
	}
	burst := int64(10)
	const day = 24 * time.Hour
	for _, x := range []struct {
		spec   model.Spec
		counts time.Duration
	}{
		{model.Spec{Algorithm: "fixed_window", Limit: 5, Window: "1h"}, time.Hour},
		{model.Spec{Algorithm: "sliding_log", Limit: 5, Window: "1h"}, time.Hour},
		{model.Spec{Algorithm: "sliding_window", Limit: 5, Window: "1h"}, 2 * time.Hour},
		{model.Spec{Algorithm: "token_bucket", Limit: 5, Window: "1h", Burst: &burst}, 2 * time.Hour},
		{model.Spec{Algorithm: "fixed_window", Limit: 5, Window: "calendar_day"}, day},
		{model.Spec{Algorithm: "fixed_window", Limit: 5, Window: "calendar_month"}, 31 * day},
		{model.Spec{Algorithm: "fixed_window", Limit: 5, Window: "billing_period"}, 2 * 31 * day},
		{model.Spec{Algorithm: "allocation", Limit: 5}, time.Microsecond}, // its units keep the customer
	} {
		x.spec.Name = "l"
		plan := plans.PlanInput{Name: "Plan", Currency: "USD", Interval: "month", IntervalCount: 2, Limits: []plans.Limit{{Meter: "api", Spec: x.spec}}}
		planstest.PutPlan(t, s, "free", plan)
		if limit, window := c.Outlasting(t.Context(), x.counts); limit != "" {
			t.Errorf("%s %s: %s, %s outlasts %s", x.spec.Algorithm, x.spec.Window, limit, window, x.counts)
		}
		if limit, window := c.Outlasting(t.Context(), x.counts-time.Microsecond); x.counts > time.Microsecond && (limit != "l" || window != x.spec.Window) {
			t.Errorf("%s %s: %q, %q does not outlast less than %s", x.spec.Algorithm, x.spec.Window, limit, window, x.counts)
		}
	}
}
