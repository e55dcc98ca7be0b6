package upkeep

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// This file fires at values' counters while a cleaner removes them as fast as it can,
// with no idle minute: all go by one clock, which moves on while no hit is under way.

const (
	cleanValues = 8
	cleanLimit  = 40 // in a window of 10 s
	cleanLog    = 70 // in any 15 s
)

type cleanFire struct {
	seed   uint64
	rounds int
	mutate func(*Cleaner)

	mu    sync.Mutex
	shots map[string][]shot // of a value, those that were admitted
	again int               // admitted at version 1
}

// exact fires and says what is wrong with the outcome, if anything is.
func (f *cleanFire) exact(t testing.TB) (removed int64, err error) {
	t.Helper()
	db, ctx := newTestDB(t), testkit.Context(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: cleanLimit, Window: "10s"},
		model.Spec{Algorithm: "sliding_log", Limit: cleanLog, Window: "15s"}, model.Spec{Algorithm: "fixed_window", Limit: 1e12, Window: "1d", Per: "-"})
	var engines []*quota.Engine
	for range 4 {
		engines = append(engines, db.startEngine(t, clock))
	}
	cleaner := db.cleaner(clock, target)
	cleaner.idle = 0
	known := cleaner.options.Targets
	cleaner.options.Targets = func(ctx context.Context, keys []model.CounterKey) ([]*model.Target, error) {
		time.Sleep(time.Millisecond) // so that hits come in between
		return known(ctx, keys)
	}
	if f.mutate != nil {
		f.mutate(cleaner)
	}
	var cleaning sync.WaitGroup
	stop, failed := make(chan struct{}), error(nil)
	cleaning.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			cleaner.at = cursor{shard: model.Shard(quotatest.Customer(target))}
			if _, err := cleaner.step(ctx); err != nil {
				failed = err
				return
			}
		}
	})
	f.shots = make(map[string][]shot)
	err = f.fire(ctx, engines, clock, target)
	close(stop)
	cleaning.Wait()
	return cleaner.Removed(), errors.Join(err, failed, f.check(), f.booked(ctx, db, target), noDeadlocks(t, db))
}

func noDeadlocks(t testing.TB, db *testDB) error {
	if n := quotatest.Deadlocks(t, db.URL); n > 0 {
		return fmt.Errorf("%d deadlocks", n)
	}
	return nil
}

// fire sends rounds of hits from many callers; then the clock goes on.
func (f *cleanFire) fire(ctx context.Context, engines []*quota.Engine, clock *quotatest.Clock, target *model.Target) error {
	r := rand.New(rand.NewPCG(f.seed, 0))
	for round := range f.rounds {
		var callers sync.WaitGroup
		var errs [32]error
		for c := range errs {
			callers.Go(func() {
				own := rand.New(rand.NewPCG(f.seed, uint64(round*len(errs)+c+1)))
				for range 3 {
					errs[c] = errors.Join(errs[c], f.shoot(ctx, engines[c%len(engines)], target, own))
				}
			})
		}
		callers.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		clock.Set(clock.At.Load() + r.Int64N(8e6))
		if round%3 == 2 { // every counter is whole again, and hit at once
			clock.Set(clock.At.Load() + 20e6)
		}
	}
	return nil
}

func (f *cleanFire) shoot(ctx context.Context, e *quota.Engine, target *model.Target, r *rand.Rand) error {
	value := fmt.Sprint(r.IntN(cleanValues))
	d, err := e.Decide(ctx, quotatest.IP(target, value), 1+r.Int64N(5))
	if err != nil || !d.Allowed {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shots[value] = append(f.shots[value], shot{d})
	if d.Versions()[1] == 1 {
		f.again++
	}
	return nil
}

// check holds what was admitted against the limits, by their definitions.
func (f *cleanFire) check() error {
	for value, shots := range f.shots {
		slices.SortFunc(shots, func(a, b shot) int { return int(a.At - b.At) })
		windows := make(map[int64]int64)
		oldest, logged := 0, int64(0)
		for _, s := range shots {
			windows[s.At/10e6] += s.Cost
			if n := windows[s.At/10e6]; n > cleanLimit {
				return fmt.Errorf("ip=%s: %d units of %d in one window", value, n, cleanLimit)
			}
			for logged += s.Cost; s.At-shots[oldest].At >= 15e6; oldest++ {
				logged -= shots[oldest].Cost
			}
			if logged > cleanLog {
				return fmt.Errorf("ip=%s: %d units of %d in 15 seconds", value, logged, cleanLog)
			}
		}
	}
	return nil
}

// booked compares the customer's own counter, and its usage, with what was admitted.
func (f *cleanFire) booked(ctx context.Context, db *testDB, target *model.Target) error {
	var want, version int64
	for _, shots := range f.shots {
		for _, s := range shots {
			want += s.Cost
			version++
		}
	}
	rows, err := db.Counters(ctx, quotatest.Customer(target))
	if err != nil {
		return err
	}
	usage, err := db.Admitted(ctx, quotatest.Customer(target))
	if err != nil {
		return err
	}
	own := rows[model.CounterKey{Customer: quotatest.Customer(target), Meter: 1, Attribute: ""}]
	booked := own.Units
	for _, n := range usage {
		booked += n
	}
	if own.Total != want || booked != want || own.Version != version {
		return fmt.Errorf("%d units admitted in %d hits, %d charged in %d, %d booked", want, version, own.Total, own.Version, booked)
	}
	return nil
}

// TestExactWhileCleaned: no limit is exceeded, and nothing is booked wrongly, while the
// values' counters come and go under the hits.
func TestExactWhileCleaned(t *testing.T) {
	f := &cleanFire{seed: testkit.Seed(t), rounds: quotatest.Sized(60, 250, 10_000)}
	removed, err := f.exact(t)
	if err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	t.Logf("%d counters removed, %d began again", removed, f.again)
	if removed < int64(f.rounds)/20 || f.again < f.rounds/20 {
		t.Error("that was too easy")
	}
}

// Each mutant is a cleaner broken in one way; the run above must fail for it.
func TestCleaningMutantsAreCaught(t *testing.T) {
	for name, mutate := range map[string]func(*Cleaner){
		"no look at what was charged meanwhile": func(c *Cleaner) {
			c.delete = strings.NewReplacer("WHERE c.version = i.version AND c.at = i.at\n", "",
				" AND c.version = i.version AND c.at = i.at", "").Replace(c.delete)
		},
		"judged too early": func(c *Cleaner) { c.idle = -12e6 },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) { // one run may be lucky
				f := &cleanFire{seed: seed, rounds: 120, mutate: mutate}
				if _, err := f.exact(t); err != nil {
					t.Log("caught:", err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}
