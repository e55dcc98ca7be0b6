package sweep

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// Hits on two nodes while their customers are forgotten all the time, without the wait
// that keeps the two steps apart. One node hears of no change, and so charges customers
// in the very moment of their removal, and afterwards. Every unit that was admitted is in
// usage or in a counter, no hit fails, and nothing deadlocks.
func TestForgettingLosesNoUnits(t *testing.T) {
	url := pgtest.NewDatabase(t)
	one, deaf := startNode(t, url, "free"), newNode(t, url, "free")
	s := one.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(1e9))
	nodes := []*catalog.Catalog{one.catalog, deaf.catalog}
	engines := []*quota.Engine{planstest.OpenEngine(t, url, one.Pool(), one.catalog.Fresh), planstest.OpenEngine(t, url, deaf.Pool(), deaf.catalog.Fresh)}
	f := forgetter(one, 0) // all are idle
	var done atomic.Bool
	var forgetting, hitting sync.WaitGroup
	forgetting.Go(func() {
		for !done.Load() {
			if err := errors.Join(f.walk(t.Context()), f.clearAll(t.Context())); err != nil {
				t.Error(err)
				return
			}
		}
	})
	const customers = 100
	each := 1000
	if testing.Short() {
		each = 300
	}
	var admitted atomic.Int64
	ids, seed := new(sync.Map), testkit.Seed(t)
	for w := range 8 {
		hitting.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			for range each {
				id, err := hitOnce(t.Context(), nodes[w%2], engines[w%2], fmt.Sprint("c", random.IntN(customers)))
				if err != nil {
					t.Error(err)
					return
				}
				admitted.Add(1)
				ids.Store(id, true)
			}
		})
	}
	hitting.Wait()
	done.Store(true)
	forgetting.Wait()
	booked := planstest.Count(t, s, "(SELECT coalesce(sum(admitted), 0) FROM usage)::bigint + (SELECT coalesce(sum(units), 0) FROM counters)::bigint")
	made := 0
	ids.Range(func(any, any) bool { made++; return true })
	if booked != admitted.Load() || made <= customers {
		t.Errorf("%d units admitted, %d booked, of %d customers", admitted.Load(), booked, made)
	}
	t.Logf("%d units of %d customers", booked, made)
}

// hitOnce charges one unit, resolving again while its limits are stale, as the API does.
func hitOnce(ctx context.Context, c *catalog.Catalog, e *quota.Engine, customer string) (id int64, err error) {
	for atLeast := int64(0); ; {
		target, err := c.Resolve(ctx, customer, "api", atLeast)
		if err != nil {
			return 0, err
		}
		d, err := e.Decide(ctx, target, 1)
		if stale, ok := errors.AsType[*model.StaleError](err); ok {
			atLeast = stale.Change
			continue
		}
		if err == nil && !d.Allowed {
			err = errors.New("refused")
		}
		return planstest.IDOf(target), err
	}
}
