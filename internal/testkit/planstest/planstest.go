// Package planstest owns what tests of several rooms of plans share. That is a meter, a plan
// and a customer on a test's database, and helpers that ask about them. It is for tests only.
// It does not know the catalog, whose own tests use it.
package planstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// NewStore is a store on a pool of its own, as another node has one.
func NewStore(t testing.TB, url string) *store.Store {
	t.Helper()
	return store.New(NewPool(t, url), store.Options{Within: testkit.Patience})
}

// NewPool is a pool of a node. No statement is too slow for it, and a transaction may stay open.
func NewPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(testkit.Context(t), url, postgres.PoolOptions{MaxConns: 8, StatementTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Hourly is a plan with one limit on one meter.
func Hourly(limit int64) plans.PlanInput {
	return plans.PlanInput{
		Name: "Plan", Currency: "USD", Interval: "month", IntervalCount: 1,
		Limits: []plans.Limit{{Meter: "api", Spec: model.Spec{Name: "hourly", Algorithm: "fixed_window", Limit: limit, Window: "1h"}}},
	}
}

// OnPlan is a customer on a plan.
func OnPlan(plan string) plans.CustomerInput {
	return plans.CustomerInput{Name: "Customer", Plan: plan, Timezone: "UTC"}
}

// Declare makes a meter.
func Declare(t testing.TB, s *store.Store, key string) {
	t.Helper()
	if _, _, err := s.PutMeter(t.Context(), key, plans.PutMeterInput{Unit: "request"}); err != nil {
		t.Fatal(err)
	}
}

// PutPlan writes the first or the next version.
func PutPlan(t testing.TB, s *store.Store, key string, in plans.PlanInput) *plans.Plan {
	t.Helper()
	p, _, err := s.PutPlan(t.Context(), key, in, plans.Precondition{})
	if errors.Is(err, plans.ErrPreconditionRequired) {
		p, _, err = s.PutPlan(t.Context(), key, in, AnyVersion)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// PutCustomer creates or replaces a customer. What does not say when a change counts is meant to be
// limits_now.
func PutCustomer(t testing.TB, s *store.Store, key string, in plans.CustomerInput) *plans.Customer {
	t.Helper()
	in.Change = cmp.Or(in.Change, plans.ChangeLimitsNow)
	c, _, err := s.PutCustomer(t.Context(), key, in, plans.Precondition{})
	if errors.Is(err, plans.ErrPreconditionRequired) {
		c, _, err = s.PutCustomer(t.Context(), key, in, AnyVersion)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Populate gives a database the meter api, the plan basic (5 an hour) and the customer
// acme on it.
func Populate(t testing.TB, s *store.Store) {
	t.Helper()
	Declare(t, s, "api")
	PutPlan(t, s, "basic", Hourly(5))
	PutCustomer(t, s, "acme", OnPlan("basic"))
}

// PopulatedStore is a populated store on a database of its own.
func PopulatedStore(t testing.TB) *store.Store {
	t.Helper()
	s := NewStore(t, pgtest.NewDatabase(t))
	Populate(t, s)
	return s
}

// ChangeNumber is the newest change's.
func ChangeNumber(t testing.TB, s *store.Store) (n int64) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), "SELECT number FROM change_number").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// WriteOverride overrides the limit hourly, or fails the test.
func WriteOverride(t testing.TB, s *store.Store, customer string, in plans.OverrideInput) *plans.Override {
	t.Helper()
	o, _, err := s.PutOverride(t.Context(), customer, "hourly", in)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// DatabaseNow is the database's clock, as overrides are checked by.
func DatabaseNow(t testing.TB, s *store.Store) (at time.Time) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// Count is the integer that a query returns. sql is the part after SELECT.
func Count(t testing.TB, s *store.Store, sql string, args ...any) (n int64) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), "SELECT "+sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Instant is an RFC 3339 time, µs since the Unix epoch.
func Instant(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at.UnixMicro()
}

// SetClock makes a test clock or sets it.
func SetClock(t testing.TB, s *store.Store, key, now string) {
	t.Helper()
	if _, _, err := s.PutTestClock(t.Context(), key, Instant(now)); err != nil {
		t.Fatal(err)
	}
}

// WorkOff has billing do all that is due. On a busy machine a fence can take longer than a
// transaction waits for it, and its customer is put off: its turn comes again here.
func WorkOff(t testing.TB, s *store.Store, workOff func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, "all that is due is done", func() bool {
		if err := workOff(testkit.Context(t)); err != nil {
			t.Fatal(err)
		}
		late, err := s.Pool().Exec(testkit.Context(t), `UPDATE open_periods SET retry_at = 0 WHERE busy_since IS NOT NULL AND blocked IS NULL`)
		if err != nil {
			t.Fatal(err)
		}
		return late.RowsAffected() == 0
	})
}

// OnClock makes a customer that lives by a clock.
func OnClock(t testing.TB, s *store.Store, key, clock string) *plans.Customer {
	t.Helper()
	in := OnPlan("basic")
	in.TestClock = &clock
	return PutCustomer(t, s, key, in)
}

// Must is a value that comes without an error.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Ptr points to a value.
func Ptr[T any](v T) *T { return &v }

// AnyVersion is If-Match: *.
var AnyVersion = plans.Precondition{Given: true, Any: true}

// Match is an If-Match.
func Match(tag string) plans.Precondition {
	return plans.Precondition{Given: true, ETags: []string{tag}}
}

// LimitOf is the first limit of a resolved target, -1 without limits.
func LimitOf(target *model.Target) int64 {
	if target.NumLimits() == 0 {
		return -1
	}
	return target.Limit(0).Limit
}

// Fields are the paths of an error that says what is wrong with an input.
func Fields(err error) []string {
	faults, ok := errors.AsType[model.FieldErrors](err)
	if !ok {
		return []string{fmt.Sprintf("no field errors but %v", err)}
	}
	var paths []string
	for _, f := range faults {
		paths = append(paths, f.Field)
	}
	return paths
}

// IDOf is the number of a target's customer.
func IDOf(target *model.Target) int64 { return target.Counters[0].Key.Customer }

// PerUnit is a price of a meter's units.
func PerUnit(meter string) plans.Price {
	return plans.Price{Meter: meter, Model: "per_unit", UnitPrice: Ptr("0.0004")}
}

var started = time.Now()

// Monotonic is the time since the tests began.
func Monotonic() time.Duration { return time.Since(started) }

// WallClock is µs since the Unix epoch, good enough for what ends in an hour.
func WallClock(context.Context) (int64, error) { return time.Now().UnixMicro(), nil }

// OpenEngine is what charges the hits of a node. change edits its options.
func OpenEngine(t testing.TB, url string, pool *pgxpool.Pool, fresh func() bool, change ...func(*quota.Options)) *quota.Engine {
	t.Helper()
	o := quota.Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			return postgres.Connect(ctx, url, session.SessionSettings)
		},
		Pool: pool, Now: WallClock, Wall: time.Now, Stopwatch: Monotonic, MemoryUsable: fresh, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	e, err := quota.NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}
