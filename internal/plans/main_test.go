package plans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newStore is a store on a pool of its own, as another node has one.
func newStore(t testing.TB, url string) *Store {
	t.Helper()
	return NewStore(newPool(t, url))
}

func newPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(pgtest.Context(t), url, postgres.PoolOptions{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

var started = time.Now()

func monotonic() time.Duration { return time.Since(started) }

// testOptions: wall clocks are good enough for keys that expire in an hour.
func testOptions() CatalogOptions {
	return CatalogOptions{
		Monotonic: monotonic,
		Now:       func(context.Context) (int64, error) { return time.Now().UnixMicro(), nil },
		Log:       slog.New(slog.DiscardHandler),
	}
}

// idleCatalog is a catalog on a store of its own that nothing keeps current but what is
// asked of it.
func idleCatalog(t testing.TB, url string, options CatalogOptions) *Catalog {
	t.Helper()
	c := NewCatalog(newStore(t, url), options)
	t.Cleanup(c.poller.close)
	return c
}

// start runs a catalog until the test ends, and returns after its first poll.
func start(t testing.TB, c *Catalog) *Catalog {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	eventually(t, "the first poll", c.Fresh)
	return c
}

// eventually waits for a condition, and fails the test when it does not come.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond) // a beat of polling, not a guess
	}
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ptr[T any](v T) *T { return &v }

var anyVersion = Precondition{Given: true, Any: true}

func match(tag string) Precondition { return Precondition{Given: true, ETags: []string{tag}} }

// hourly is a plan with one limit on one meter.
func hourly(limit int64) PlanInput {
	return PlanInput{
		Name: "Plan", Currency: "USD", Interval: "month", IntervalCount: 1,
		Limits: []Limit{{Meter: "api", Spec: quota.Spec{Name: "hourly", Algorithm: "fixed_window", Limit: limit, Window: "1h"}}},
	}
}

func onPlan(plan string) CustomerInput {
	return CustomerInput{Name: "Customer", Plan: plan, Timezone: "UTC"}
}

func declare(t testing.TB, s *Store, key string) {
	t.Helper()
	if _, _, err := s.PutMeter(t.Context(), key, PutMeterInput{Unit: "request"}); err != nil {
		t.Fatal(err)
	}
}

// putPlan writes the first or the next version.
func putPlan(t testing.TB, s *Store, key string, in PlanInput) *Plan {
	t.Helper()
	p, _, err := s.PutPlan(t.Context(), key, in, Precondition{})
	if errors.Is(err, ErrPreconditionRequired) {
		p, _, err = s.PutPlan(t.Context(), key, in, anyVersion)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// putCustomer creates or replaces a customer.
func putCustomer(t testing.TB, s *Store, key string, in CustomerInput) *Customer {
	t.Helper()
	c, _, err := s.PutCustomer(t.Context(), key, in, Precondition{})
	if errors.Is(err, ErrPreconditionRequired) {
		c, _, err = s.PutCustomer(t.Context(), key, in, anyVersion)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// populate gives a database the meter api, the plan basic (5 an hour) and the customer
// acme on it.
func populate(t testing.TB, s *Store) {
	t.Helper()
	declare(t, s, "api")
	putPlan(t, s, "basic", hourly(5))
	putCustomer(t, s, "acme", onPlan("basic"))
}

// limitOf is the first limit of a resolved target, -1 without limits.
func limitOf(target *quota.Target) int64 {
	if target.NumLimits() == 0 {
		return -1
	}
	return target.Limit(0).Limit
}

// fields are the paths of an error that says what is wrong with an input.
func fields(err error) []string {
	faults, ok := errors.AsType[quota.FieldErrors](err)
	if !ok {
		return []string{fmt.Sprintf("no field errors but %v", err)}
	}
	var paths []string
	for _, f := range faults {
		paths = append(paths, f.Field)
	}
	return paths
}
