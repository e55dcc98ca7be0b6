package quota

import (
	"errors"
	"fmt"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestImports: usage of past instants counts in its hour and where it still runs; an
// opening balance is what counts, and no usage; each once.
func TestImports(t *testing.T) {
	const hour = int64(3600e6)
	now := quotatest.Epoch + 10*24*hour + 30*60e6
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(now)
	e := db.startEngine(t, clock)
	limits := []*model.Limit{
		quotatest.Compile(t, model.Spec{Name: "month", Algorithm: "fixed_window", Limit: 1000, Window: "calendar_month"}),
		quotatest.Window(t, "hour", 100, "1h"),
		quotatest.Bucket(t, "bucket", 3600, "1h", 500), // one a second
		quotatest.Compile(t, model.Spec{Name: "slide", Algorithm: "sliding_window", Limit: 200, Window: "1h"}),
		quotatest.Compile(t, model.Spec{Name: "log", Algorithm: "sliding_log", Limit: 900, Window: "1h"}),
		quotatest.Compile(t, model.Spec{Name: "seats", Algorithm: "allocation", Limit: 5000}),
		quotatest.Compile(t, model.Spec{Name: "first", Algorithm: "fixed_window", Limit: 900, Window: "2h", Align: "first_hit"}),
	}
	target := quotatest.Target(1, 1, 1, limits...)
	slots := model.NewTarget(1, 2, 1, []*model.Limit{limits[0], quotatest.Compile(t,
		model.Spec{Name: "slots", Algorithm: "concurrency", Limit: 3, TTL: "1m"})}, target.Periods, nil)
	for i, c := range []struct {
		in       locked.Import
		used     [7]int64
		period   int64
		problems error
	}{
		{locked.Import{Cost: 600, At: now - 5*24*hour}, [7]int64{600, 0, 0, 0, 0, 600, 0}, 600, nil},
		{locked.Import{Cost: 100, At: now - hour}, [7]int64{700, 0, 0, 50, 0, 700, 100}, 700, nil}, // the bucket has refilled
		{locked.Import{Cost: 50, At: now - 60e6}, [7]int64{750, 50, 0, 100, 50, 750, 150}, 750, nil},
		{locked.Import{Cost: 90, At: now - 40e6}, [7]int64{840, 140, 80, 190, 140, 840, 240}, 840, nil},
		{locked.Import{Cost: 10, At: now - 50e6}, [7]int64{850, 150, 80, 200, 150, 850, 250}, 850, nil}, // after a later one
		{locked.Import{Cost: 1, At: now + 1}, [7]int64{850, 150, 80, 200, 150, 850, 250}, 850, locked.ErrFuture},
		{locked.Import{Limit: "seats", Used: 7}, [7]int64{850, 150, 80, 200, 150, 7, 250}, 850, nil},
		{locked.Import{Limit: "log", Used: 3}, [7]int64{850, 150, 80, 200, 3, 7, 250}, 850, nil},
		{locked.Import{Limit: "bucket", Used: 500}, [7]int64{850, 150, 500, 200, 3, 7, 250}, 850, nil},
		{locked.Import{Limit: "bucket", Used: 501}, [7]int64{850, 150, 500, 200, 3, 7, 250}, 850, &locked.TooMuchError{Most: 500}},
		{locked.Import{Limit: "hour", Used: 0}, [7]int64{850, 0, 500, 200, 3, 7, 250}, 850, nil},
		{locked.Import{Limit: "slide", Used: 20}, [7]int64{850, 0, 500, 20, 3, 7, 250}, 850, nil},
		{locked.Import{Limit: "first", Used: 20}, [7]int64{850, 0, 500, 20, 3, 7, 20}, 850, nil},
		{locked.Import{Limit: "month", Used: 1000}, [7]int64{1000, 0, 500, 20, 3, 7, 20}, 850, nil},
		{locked.Import{Limit: "nothing", Used: 1}, [7]int64{1000, 0, 500, 20, 3, 7, 20}, 850, locked.ErrNoSuchLimit},
	} {
		c.in.Target, c.in.ID = target, model.NewID("import", fmt.Sprint(i), "")
		for again := range 2 {
			got := e.ImportAll(ctx, []locked.Import{c.in})[0]
			var most *locked.TooMuchError
			if errors.As(c.problems, &most) {
				var got2 *locked.TooMuchError
				if !errors.As(got.Err, &got2) || got2.Most != most.Most {
					t.Errorf("%d: %v", i, got.Err)
				}
			} else if !errors.Is(got.Err, c.problems) || c.problems == nil && got.Replayed != (again == 1) {
				t.Errorf("%d: %+v", i, got)
			}
		}
		s, err := e.Standings(ctx, []*model.Target{target})
		if err != nil {
			t.Fatal(err)
		}
		for v, want := range c.used {
			if got := s[0].View(v).Used; got != want {
				t.Errorf("%d: %s has %d used, want %d", i, limits[v].Name, got, want)
			}
		}
		if s[0].PeriodUsed != c.period {
			t.Errorf("%d: %d in the period, want %d", i, s[0].PeriodUsed, c.period)
		}
	}
	if d, err := e.Decide(ctx, target, 1); err != nil || d.Allowed {
		t.Error("the month is full", d.String(), err)
	}
	if got := e.ImportAll(ctx, []locked.Import{{Target: slots, Limit: "slots", Used: 1, ID: model.NewID("import", "s", "")}})[0]; !errors.Is(got.Err,
		locked.ErrNoSuchLimit) {
		t.Error(got)
	}
	all, err := e.Usage(ctx, 1, 1, 0, now+hour, 100)
	if err != nil || len(all) != 3 || all[0].Admitted != 600 || all[1].Admitted != 100 || all[2].Admitted != 150 {
		t.Errorf("%+v, %v", all, err)
	}
	reconciled(t, db)
}
