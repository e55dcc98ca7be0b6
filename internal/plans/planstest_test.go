package plans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// newStore is a store on a pool of its own, as another node has one.
func newStore(t testing.TB, url string) *Store {
	t.Helper()
	return NewStore(newPool(t, url))
}

// newPool is a pool of a node.
func newPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(pgtest.Context(t), url, postgres.PoolOptions{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// hourly is a plan with one limit on one meter.
func hourly(limit int64) PlanInput {
	return PlanInput{
		Name: "Plan", Currency: "USD", Interval: "month", IntervalCount: 1,
		Limits: []Limit{{Meter: "api", Spec: model.Spec{Name: "hourly", Algorithm: "fixed_window", Limit: limit, Window: "1h"}}},
	}
}

// onPlan is a customer on a plan.
func onPlan(plan string) CustomerInput {
	return CustomerInput{Name: "Customer", Plan: plan, Timezone: "UTC"}
}

// declare makes a meter.
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

// newStoreWithPopulation is a populated store on a database of its own.
func newStoreWithPopulation(t testing.TB) *Store {
	t.Helper()
	s := newStore(t, pgtest.NewDatabase(t))
	populate(t, s)
	return s
}

// changeNumber is the newest change's.
func changeNumber(t testing.TB, s *Store) (n int64) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), "SELECT number FROM change_number").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// writeOverride overrides the limit hourly, or fails the test.
func writeOverride(t testing.TB, s *Store, customer string, in OverrideInput) *Override {
	t.Helper()
	o, _, err := s.PutOverride(t.Context(), customer, "hourly", in)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// databaseNow is the database's clock, as overrides are checked by.
func databaseNow(t testing.TB, s *Store) (at time.Time) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// count is the integer that a query gives, of which sql is all behind SELECT.
func count(t testing.TB, s *Store, sql string, args ...any) (n int64) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), "SELECT "+sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// instant is an RFC 3339 time, µs since the Unix epoch.
func instant(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at.UnixMicro()
}

// setClock makes a test clock or sets it.
func setClock(t testing.TB, s *Store, key, now string) {
	t.Helper()
	if _, _, err := s.PutTestClock(t.Context(), key, instant(now)); err != nil {
		t.Fatal(err)
	}
}

// onClock makes a customer that lives by a clock.
func onClock(t testing.TB, s *Store, key, clock string) *Customer {
	t.Helper()
	in := onPlan("basic")
	in.TestClock = &clock
	return putCustomer(t, s, key, in)
}

// must is a value that comes without an error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// ptr points to a value.
func ptr[T any](v T) *T { return &v }

// anyVersion is If-Match: *.
var anyVersion = Precondition{Given: true, Any: true}

// match is an If-Match.
func match(tag string) Precondition { return Precondition{Given: true, ETags: []string{tag}} }

// limitOf is the first limit of a resolved target, -1 without limits.
func limitOf(target *model.Target) int64 {
	if target.NumLimits() == 0 {
		return -1
	}
	return target.Limit(0).Limit
}

// fields are the paths of an error that says what is wrong with an input.
func fields(err error) []string {
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

// idOf is the number of a target's customer.
func idOf(target *model.Target) int64 { return target.Counters[0].Key.Customer }

// perUnit is a price of a meter's units.
func perUnit(meter string) Price {
	return Price{Meter: meter, Model: "per_unit", UnitPrice: ptr("0.0004")}
}

var started = time.Now()

// monotonic is the time since the tests began.
func monotonic() time.Duration { return time.Since(started) }

// wallClock is µs since the Unix epoch, good enough for what ends in an hour.
func wallClock(context.Context) (int64, error) { return time.Now().UnixMicro(), nil }

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

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends to the log.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// count says how often the log has a text.
func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// String is the whole log.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// openEngine is what charges the hits of a node.
func openEngine(t testing.TB, url string, pool *pgxpool.Pool, fresh func() bool) *quota.Engine {
	t.Helper()
	e, err := quota.NewEngine(quota.Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			return postgres.Connect(ctx, url, session.SessionSettings)
		},
		Pool: pool, Now: wallClock, Wall: time.Now, Stopwatch: monotonic, MemoryUsable: fresh, Log: slog.New(slog.DiscardHandler),
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
