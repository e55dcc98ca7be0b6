package quota

import (
	"errors"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

var errBarred = errors.New("barred")

// TestBarred: whatever way a hit is judged, one before the instant passes, and one at it does not. The
// instant is that of the hit: a counter that is ahead of the clock takes its hits along.
func TestBarred(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	engines := map[string]*Engine{"with memory": db.startEngine(t, clock), "without": db.startEngine(t, clock, withoutMemory)}
	ends := quotatest.Epoch + 10
	customer := int64(0)
	made := func(from int64) *model.Target {
		customer++
		target := quotatest.Target(customer, 1, 1, quotatest.Window(t, "a", 100, "1h"))
		target.Bar(from, errBarred)
		return target
	}
	ways := map[string]func(*Engine, *model.Target, string) error{
		"plain": func(e *Engine, target *model.Target, _ string) error {
			_, err := e.Decide(ctx, target, 1)
			return err
		},
		"once": func(e *Engine, target *model.Target, id string) error {
			_, err := e.decideOnce(ctx, target, 1, model.NewID("hit", id))
			return err
		},
		"many": func(e *Engine, target *model.Target, _ string) error {
			return e.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1}, {Target: target, Cost: 1}})[1].Err
		},
		"overrun": func(e *Engine, target *model.Target, _ string) error {
			return e.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1, Overrun: true}})[0].Err
		},
		"together": func(e *Engine, target *model.Target, _ string) error {
			_, _, err := e.DecideTogether(ctx, []model.Hit{{Target: target, Cost: 1}})
			return err
		},
		"look": func(e *Engine, target *model.Target, _ string) error {
			_, err := e.Look(ctx, target, 1)
			return err
		},
		"looks": func(e *Engine, target *model.Target, _ string) error {
			return e.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1, Look: true}})[0].Err
		},
		"reservation": func(e *Engine, target *model.Target, id string) error {
			_, err := e.Reserve(ctx, target, 1, 60e6, model.NewID("reservation", id))
			return err
		},
	}
	for name, e := range engines {
		for way, do := range ways {
			target := made(ends)
			clock.Set(ends - 1)
			if err := do(e, target, "before"+name+way); err != nil {
				t.Errorf("%s, %s: a microsecond before: %v", name, way, err)
			}
			clock.Set(ends)
			if err := do(e, target, "at"+name+way); !errors.Is(err, errBarred) {
				t.Errorf("%s, %s: at the instant: %v", name, way, err)
			}
			clock.Set(ends - 1)
			if err := do(e, made(ends-5), "fresh"+name+way); !errors.Is(err, errBarred) {
				t.Errorf("%s, %s: of a counter without a row: %v", name, way, err)
			}
			ahead := made(ends)
			later := quotatest.Target(customer, 1, 1, quotatest.Window(t, "a", 100, "1h"))
			clock.Set(ends)
			if _, err := e.Decide(ctx, later, 1); err != nil {
				t.Fatal(err)
			}
			clock.Set(ends - 1)
			if err := do(e, ahead, "ahead"+name+way); !errors.Is(err, errBarred) {
				t.Errorf("%s, %s: of a counter that is ahead: %v", name, way, err)
			}
		}
	}
	if rows := pgtest.Query[int64](t, db.URL, `SELECT count(*) FROM counters WHERE at = 0`); rows != 0 {
		t.Errorf("%d rows were made for what was refused", rows)
	}
	reconciled(t, db)
}

// TestBarredSendsNothing: whoever is barred costs no statement, and is not told to wait by a refusal that
// a node remembers.
func TestBarredSendsNothing(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	barred := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 1, "1h"))
	barred.Bar(quotatest.Epoch, errBarred)
	statements := e.node.Totals.Statements.Load()
	if _, err := e.Decide(ctx, barred, 1); !errors.Is(err, errBarred) {
		t.Error(err)
	}
	if r := e.DecideAll(ctx, []model.Hit{{Target: barred, Cost: 1}}); !errors.Is(r[0].Err, errBarred) {
		t.Error(r[0].Err)
	}
	if n := e.node.Totals.Statements.Load() - statements; n != 0 {
		t.Errorf("%d statements", n)
	}
	open := quotatest.Target(2, 1, 1, quotatest.Window(t, "a", 1, "1h"))
	for _, fits := range []bool{true, false, false} {
		if d, err := e.Decide(ctx, open, 1); err != nil || d.Allowed != fits {
			t.Fatal(d.String(), err)
		}
	}
	ahead := quotatest.Target(2, 1, 1, quotatest.Window(t, "a", 1, "1h"))
	ahead.Bar(quotatest.Epoch, errBarred)
	clock.Set(quotatest.Epoch - 1)
	if d, err := e.Decide(ctx, ahead, 1); !errors.Is(err, errBarred) {
		t.Error(d.String(), err)
	}
}

// TestBarredIsNoEndOfAll: what was admitted is answered again, committed, released and given back, and
// how the customer stands is told.
func TestBarredIsNoEndOfAll(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	open := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 100, "1h"))
	if _, err := e.decideOnce(ctx, open, 7, model.NewID("hit", "one")); err != nil {
		t.Fatal(err)
	}
	kept, err := e.Reserve(ctx, open, 5, 60e6, model.NewID("reservation", "kept"))
	if err != nil {
		t.Fatal(err)
	}
	barred := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 100, "1h"))
	barred.Bar(quotatest.Epoch-1, errBarred)
	if d, err := e.decideOnce(ctx, barred, 7, model.NewID("hit", "one")); err != nil || !d.Replayed {
		t.Error(d.String(), err)
	}
	if again, err := e.Reserve(ctx, barred, 5, 60e6, model.NewID("reservation", "kept")); err != nil || again.ID != kept.ID {
		t.Error(again, err)
	}
	if _, err := e.Commit(ctx, barred, kept.ID, 6); err != nil { // more than is held
		t.Error(err)
	}
	s, err := e.Standings(ctx, []*model.Target{barred})
	if err != nil || s[0].PeriodUsed != 13 {
		t.Errorf("%+v, %v", s, err)
	}
	statements := e.node.Totals.Statements.Load()
	if _, err := e.Decide(ctx, barred, 1); !errors.Is(err, errBarred) || e.node.Totals.Statements.Load() != statements {
		t.Errorf("%v, and %d statements", err, e.node.Totals.Statements.Load()-statements)
	}
	reconciled(t, db)
}
