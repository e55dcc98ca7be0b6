package quota

import (
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestRefundPastTheBurst: a refund without a hit gives a token bucket back all that was taken, however
// low the bucket's burst is today.
func TestRefundPastTheBurst(t *testing.T) {
	zero, hundred := int64(0), int64(100)
	plan := model.Spec{Name: "b", Algorithm: "token_bucket", Limit: 1, Window: "720h"}
	thousand := int64(1000)
	plan.Burst = &thousand
	closed, lower := plan, plan
	closed.Limit, closed.Burst = 0, &zero
	lower.Burst = &hundred
	soft := plan
	soft.Mode = "soft"
	for name, c := range map[string]struct {
		plan, then model.Spec
		hit        int64
		overrun    bool
		hold       int64
		refund     int64
		units      int64
		used       int64 // under the plan, after it
	}{
		"as it was":          {plan, plan, 500, false, 0, 200, 200, 300},
		"closed":             {plan, closed, 500, false, 0, 200, 200, 300},
		"a lower burst":      {plan, lower, 500, false, 0, 200, 200, 300},
		"more than was hit":  {plan, closed, 500, false, 0, 900, 500, 0},
		"beside what's held": {plan, lower, 500, false, 300, 700, 500, 300},
		"an overrun":         {plan, plan, 1500, true, 0, 1200, 1200, 300},
		"a soft limit":       {soft, soft, 1500, false, 0, 1200, 1200, 300},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
			e := db.startEngine(t, clock)
			before := quotatest.Target(1, 1, 1, quotatest.Compile(t, c.plan))
			r := e.DecideAll(ctx, []model.Hit{{Target: before, Cost: c.hit, Overrun: c.overrun}})[0]
			if r.Err != nil || !r.Decision.Allowed {
				t.Fatal(r.Decision.String(), r.Err)
			}
			if c.hold > 0 {
				if held, err := e.Reserve(ctx, before, c.hold, 3600e6, model.NewID("reservation", "r")); err != nil || !held.Allowed {
					t.Fatal(held.String(), err)
				}
			}
			rates := model.Rates{{From: model.Always, Limit: c.plan.Limit}, {From: quotatest.Epoch, Limit: c.then.Limit}}
			then := quotatest.Target(1, 1, 2, quotatest.Compile(t, c.then).WithRates(rates))
			f, err := e.Refund(ctx, locked.Refund{Target: then, Cost: c.refund, ID: model.NewID("refund", "f")})
			if err != nil || f.Units != c.units {
				t.Errorf("%d refunded, want %d, %v", f.Units, c.units, err)
			}
			rates = append(rates, model.Rate{From: quotatest.Epoch, Limit: c.plan.Limit})
			after := quotatest.Target(1, 1, 3, quotatest.Compile(t, c.plan).WithRates(rates))
			st, err := e.Standings(ctx, []*model.Target{after})
			if err != nil {
				t.Fatal(err)
			}
			if used := st[0].View(0).Used; used != c.used || st[0].PeriodUsed != c.hit-c.units {
				t.Errorf("%d used, %d in the period; want %d and %d", used, st[0].PeriodUsed, c.used, c.hit-c.units)
			}
		})
	}
}
