package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// thresholdFire is three nodes and eight callers that use windows up, again and again, while sessions are
// killed: of charges, and of those who take what was reached.
type thresholdFire struct {
	*testDB
	clock     *quotatest.Clock
	engines   []*Engine
	customers []int64
	lost      atomic.Int64 // outcomes
	refused   sync.Map     // customers that a window has refused
}

// limits are a window, and beside it what is given back.
func (f *thresholdFire) limits(t testing.TB) []*model.Limit {
	return []*model.Limit{
		quotatest.Compile(t, model.Spec{Name: "window", Algorithm: "fixed_window", Window: "1h", Limit: 100, Notify: []int{1, 50, 80, 99, 100}}),
		quotatest.Compile(t, model.Spec{Name: "ever", Algorithm: "allocation", Limit: 1_000_000, Notify: []int{1}}),
	}
}

// fire sends so many operations to any customer from one node.
func (f *thresholdFire) fire(ctx context.Context, t *testing.T, node int, random *rand.Rand, id *atomic.Int64) {
	e := f.engines[node]
	targets := make([]*model.Target, len(f.customers))
	for i, customer := range f.customers {
		targets[i] = model.NewTarget(1, customer, 1, f.limits(t), quotatest.Target(customer, 1, 1).Periods, nil)
	}
	for range 120 {
		target, cost, name := targets[random.IntN(len(targets))], 1+random.Int64N(7), fmt.Sprint(id.Add(1))
		var d model.Decision
		var err error
		switch random.IntN(8) {
		case 0:
			r := e.DecideAll(ctx, []model.Hit{{Target: target, Cost: cost, ID: model.NewID("hit", name, "p")}})[0]
			d, err = r.Decision, r.Err
		case 1:
			var held locked.Reservation
			if held, err = e.Reserve(ctx, target, cost, 3600e6, model.NewID("reserve", name, "p")); err == nil && held.Allowed {
				_, err = e.Commit(ctx, target, held.ID, cost) // all of it, so that use never falls
			}
			d = held.Decision
		default:
			d, err = e.Decide(ctx, target, cost)
		}
		switch {
		case err == nil && !d.Allowed:
			f.refused.Store(target.Counters[0].Key.Customer, true)
		case errors.Is(err, session.ErrOutcomeUnknown):
			f.lost.Add(1)
		case errors.Is(err, session.ErrUnavailable):
			time.Sleep(time.Millisecond)
		case err != nil:
			if _, busy := errors.AsType[*locked.NoRoomError](err); !busy && !errors.Is(err, session.ErrBusy) {
				t.Error(err)
			}
		}
	}
}

// take moves what was reached to a table of the test's, as a numberer does. What is cut off is tried again.
func (f *thresholdFire) take(ctx context.Context) {
	_ = pgx.BeginFunc(ctx, f.Pool, func(tx pgx.Tx) error {
		all, err := upkeep.TakeThresholds(ctx, tx, 20)
		for i := 0; i < len(all) && err == nil; i++ {
			_, err = tx.Exec(ctx, `INSERT INTO told VALUES ($1, $2, $3, $4)`, all[i].Customer, all[i].Limit, all[i].Percent, all[i].Start)
		}
		return err
	})
}

// TestThresholdsUnderFire: each threshold is told exactly once in each window that has reached it, and
// none is told of what was not.
func TestThresholdsUnderFire(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	f := &thresholdFire{testDB: newTestDB(t), clock: quotatest.NewClock(quotatest.Epoch)}
	f.Exec(ctx, t, `CREATE TABLE told (customer bigint, name text, percent integer, starts bigint)`)
	for range 3 {
		f.engines = append(f.engines, f.startEngine(t, f.clock))
	}
	for range 6 {
		f.customers = append(f.customers, quotatest.FreshCustomers(1))
	}
	killer := f.Session(t)
	var id atomic.Int64
	seed := testkit.Seed(t)
	// A kill may meet reads alone. Then there are more rounds: a run in which no outcome was lost proves nothing.
	for round, rounds := 0, quotatest.Sized(3, 8, 60); round < rounds || f.lost.Load() == 0 && round < 10*rounds; round++ {
		f.refused.Clear()
		firing, stop := context.WithCancel(ctx)
		var callers, others sync.WaitGroup
		for c := range 8 {
			random := rand.New(rand.NewPCG(seed+uint64(round), uint64(c)))
			callers.Go(func() { f.fire(ctx, t, c%3, random, &id) })
		}
		for range 3 {
			others.Go(func() {
				for firing.Err() == nil {
					f.take(firing)
					time.Sleep(time.Millisecond)
				}
			})
		}
		pauses := rand.New(rand.NewPCG(seed+uint64(round), 8))
		others.Go(func() {
			for firing.Err() == nil {
				time.Sleep(time.Duration(2+pauses.IntN(20)) * time.Millisecond)
				_, err := killer.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() < 0.4`)
				if err != nil {
					t.Error(err)
				}
			}
		})
		callers.Wait()
		stop()
		others.Wait()
		f.check(ctx, t, round)
		f.clock.At.Add(3600e6)
	}
	if f.lost.Load() == 0 {
		t.Error("no outcome was ever lost: this run proves nothing")
	}
}

// check compares what was told of the window that runs with what is used in it.
func (f *thresholdFire) check(ctx context.Context, t *testing.T, round int) {
	t.Helper()
	testkit.Eventually(t, "all to be taken", func() bool {
		f.take(ctx)
		var waiting int
		return f.Pool.QueryRow(ctx, `SELECT count(*) FROM thresholds`).Scan(&waiting) == nil && waiting == 0
	})
	start := f.clock.At.Load()
	for _, customer := range f.customers {
		target := model.NewTarget(1, customer, 1, f.limits(t), quotatest.Target(customer, 1, 1).Periods, nil)
		d, err := f.engines[0].Look(ctx, target, 0)
		if err != nil {
			t.Fatal(err)
		}
		used := d.View(0).Used
		_, refused := f.refused.Load(customer)
		for _, percent := range []int64{1, 50, 80, 99, 100} {
			want := 0
			if used >= percent || percent == 100 && refused {
				want = 1
			}
			var told int
			err := f.Pool.QueryRow(ctx, `SELECT count(*) FROM told WHERE customer = $1 AND name = 'window' AND percent = $2 AND starts = $3`, customer,
				percent, start).Scan(&told)
			if err != nil {
				t.Fatal(err)
			}
			// Of a refusal whose answer was lost nobody knows.
			if told != want && (percent < 100 || used == 100 || told > 1 || want == 1) {
				t.Errorf("round %d, customer %d: %d percent was told %d times, and %d are used (refused: %v)", round, customer, percent, told, used, refused)
			}
		}
	}
}
