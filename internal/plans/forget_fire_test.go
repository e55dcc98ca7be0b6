package plans

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

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
)

// openEngine is what charges the hits of a node.
func openEngine(t testing.TB, url string, c *Catalog) *quota.Engine {
	t.Helper()
	e, err := quota.NewEngine(quota.Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) { return postgres.Connect(ctx, url, quota.SessionSettings) },
		Pool:    c.store.pool, Now: c.options.Now, Wall: time.Now, Stopwatch: monotonic, MemoryUsable: c.Fresh, Log: c.options.Log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Hits on two nodes while their customers are forgotten all the time, without the wait
// that keeps the two steps apart. One node hears of no change, and so charges customers
// in the very moment of their removal, and afterwards. Every unit that was admitted is in
// usage or in a counter, no hit fails, and nothing deadlocks.
func TestForgettingLosesNoUnits(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s, one := openNode(t, url)
	options := testOptions()
	options.DefaultPlan = "free"
	deaf := idleCatalog(t, url, options)
	declare(t, s, "api")
	putPlan(t, s, "free", hourly(1e9))
	nodes := []*Catalog{one, deaf}
	engines := []*quota.Engine{openEngine(t, url, one), openEngine(t, url, deaf)}
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
	ids := new(sync.Map)
	for w := range 8 {
		hitting.Go(func() {
			for range each {
				id, err := hitOnce(t.Context(), nodes[w%2], engines[w%2], fmt.Sprint("c", rand.IntN(customers)))
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
	booked := count(t, s, "(SELECT coalesce(sum(admitted), 0) FROM usage)::bigint + (SELECT coalesce(sum(units), 0) FROM counters)::bigint")
	made := 0
	ids.Range(func(any, any) bool { made++; return true })
	if booked != admitted.Load() || made <= customers {
		t.Errorf("%d units admitted, %d booked, of %d customers", admitted.Load(), booked, made)
	}
	t.Logf("%d units of %d customers", booked, made)
}

// hitOnce charges one unit, resolving again while its limits are stale, as the API does.
func hitOnce(ctx context.Context, c *Catalog, e *quota.Engine, customer string) (id int64, err error) {
	for atLeast := int64(0); ; {
		target, err := c.Resolve(ctx, customer, "api", atLeast)
		if err != nil {
			return 0, err
		}
		d, err := e.Decide(ctx, target, 1)
		if stale, ok := errors.AsType[*quota.StaleError](err); ok {
			atLeast = stale.Change
			continue
		}
		if err == nil && !d.Allowed {
			err = errors.New("refused")
		}
		return idOf(target), err
	}
}
