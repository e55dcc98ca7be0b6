package quota

import (
	"fmt"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestRowsStandWhereUnitsAreBooked: whatever books units or takes them off leaves the customer's own
// counter at its instant. Who places the end of a billing period finds it there. What the limits say does
// not hang on it.
func TestRowsStandWhereUnitsAreBooked(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	limits := []*model.Limit{quotatest.Window(t, "a", 1000, "5m"), quotatest.Bucket(t, "b", 60, "1h", 1000)}
	const first, at, hold = quotatest.Epoch, quotatest.Epoch + 100e6, int64(200e6)
	hit := model.NewID("hit", "one")
	for n, c := range []struct {
		name    string
		reserve int64 // 0: a hit of 50 with an id
		do      func(target *model.Target, r locked.ReservationID) error
		units   int64
		moves   bool
	}{
		{"a commit of all", 20, func(target *model.Target, r locked.ReservationID) error { return settled(e.Commit(ctx, target, r, 20)) }, 20, true},
		{"a commit of less", 20, func(target *model.Target, r locked.ReservationID) error { return settled(e.Commit(ctx, target, r, 5)) }, 5, true},
		{"a commit of more", 20, func(target *model.Target, r locked.ReservationID) error { return settled(e.Commit(ctx, target, r, 30)) }, 30, true},
		{"a commit of nothing", 20, func(target *model.Target, r locked.ReservationID) error { return settled(e.Commit(ctx, target, r, 0)) }, 0, false},
		{"a release", 20, func(target *model.Target, r locked.ReservationID) error { return settled(e.Release(ctx, target, r)) }, 0, false},
		{"an overrun", 20, func(target *model.Target, r locked.ReservationID) error {
			return settled(e.CommitOverrun(ctx, target, r, 20))
		}, 20, true},
		{"a refund of a hit", 0, func(target *model.Target, _ locked.ReservationID) error {
			_, err := e.Refund(ctx, locked.Refund{Target: target, Cost: 30, Hit: hit, ID: model.NewID("refund", "r")})
			return err
		}, 20, true},
		{"a refund", 0, func(target *model.Target, _ locked.ReservationID) error {
			_, err := e.Refund(ctx, locked.Refund{Target: target, Cost: 30, ID: model.NewID("refund", "r")})
			return err
		}, 20, true},
		{"an import", 0, func(target *model.Target, _ locked.ReservationID) error {
			return e.ImportAll(ctx, []locked.Import{{Target: target, ID: model.NewID("import", "i"), Cost: 7, At: at}})[0].Err
		}, 57, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			customer := int64(n + 1)
			target, _ := dailyTarget(customer, limits...)
			clock.Set(first)
			var id locked.ReservationID
			if c.reserve > 0 {
				r, err := e.Reserve(ctx, target, c.reserve, hold, model.NewID("reservation", fmt.Sprint(n)))
				if err != nil || !r.Allowed {
					t.Fatal(r.String(), err)
				}
				id = r.ID
			} else if d, err := e.decideOnce(ctx, target, 50, hit); err != nil || !d.Allowed {
				t.Fatal(d.String(), err)
			}
			before := db.counter(t, customer)
			clock.Set(at)
			if err := c.do(target, id); err != nil {
				t.Fatal(err)
			}
			row, want := db.counter(t, customer), first
			if c.moves {
				want = at
			}
			if row.At != want || row.Total != c.units || row.Version <= before.Version {
				t.Errorf("the row stands at %d with %d units in all, want %d and %d; %+v after %+v", row.At-first, row.Total, want-first, c.units, row, before)
			}
			d, err := e.Look(ctx, target, 0)
			if err != nil || d.View(0).Used != c.units {
				t.Errorf("the window: %s, %v", d.String(), err)
			}
			// Of 1,000 tokens 60 come back an hour, so one in these 100 s where units are out.
			if used := d.View(1).Used; used > c.units || used < c.units-2 {
				t.Errorf("the bucket: %d used, want %d or a little less", used, c.units)
			}
		})
	}
	reconciled(t, db)
}

func settled(_ locked.Settled, err error) error { return err }
