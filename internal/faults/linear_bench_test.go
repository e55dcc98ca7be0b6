package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/calendar"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// bench is two engines on one database, each with a proxy of its own on its way there.
type bench struct {
	t       testing.TB
	seed    uint64
	ids     bool // operations have ids, and are sent again; without, plain hits are, blindly
	engines []*quota.Engine
	proxies []*proxy
	limits  []*model.Limit
	ticks   atomic.Int64 // the time of histories: each reading is another
	lost    atomic.Int64 // answers
	unknown atomic.Int64 // outcomes
}

func newBench(t testing.TB, seed uint64, ids bool, kinds ...fault) *bench {
	t.Helper()
	b := &bench{t: t, seed: seed, ids: ids}
	for _, s := range []model.Spec{
		{Name: "used", Algorithm: "allocation", Limit: mostUsed},
		{Name: "in-flight", Algorithm: "concurrency", Limit: mostInFlight, TTL: "1h"},
	} {
		l, bad := model.Compile(s)
		if bad != nil {
			t.Fatal(bad)
		}
		b.limits = append(b.limits, l)
	}
	databaseURL := pgtest.NewDatabase(t)
	for i := range uint64(2) {
		p := newProxy(t, addressOf(t, databaseURL), toPostgres, newDice(seed+i, 0, 3*time.Millisecond, kinds...))
		b.proxies = append(b.proxies, p)
		b.engines = append(b.engines, newEngine(t, databaseURL, p))
	}
	return b
}

// newEngine starts an engine whose sessions go by way of a proxy; its reads do not. Time
// stands still. Nothing is refused from memory, which may be a second behind.
func newEngine(t testing.TB, databaseURL string, p *proxy) *quota.Engine {
	t.Helper()
	pool, err := postgres.Open(testkit.Context(t), databaseURL, postgres.PoolOptions{Params: session.PoolSettings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	through, began := throughProxy(t, databaseURL, p), time.Now()
	e, err := quota.NewEngine(quota.Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			return postgres.Connect(ctx, through, session.SessionSettings)
		},
		Pool:         pool,
		Now:          func(context.Context) (int64, error) { return epoch, nil },
		Wall:         time.Now,
		Stopwatch:    func() time.Duration { return time.Since(began) },
		MemoryUsable: func() bool { return false },
		Patience:     testkit.Patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.dice.set(0)
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// odds sets the odds of a fault in one exchange with PostgreSQL.
func (b *bench) odds(odds float64) {
	for _, p := range b.proxies {
		p.dice.set(odds)
	}
}

// The instants of a history, which is short, and the lives of its reservations, in s: the
// short ones are over at the second instant, the long ones are not.
const (
	muchLater = 10
	shortTTL  = 5
	longTTL   = 3000

	epoch = int64(1_772_323_200_000_000) // µs: 2026-03-01T00:00:00Z, and its second 0
)

// target is the counter of a history, a customer's that nobody used, at some instant.
func (b *bench) target(customer, now int64) *model.Target {
	anchor, err := calendar.ParseAnchor("2026-01-01T00:00:00")
	if err != nil {
		panic(err)
	}
	periods := calendar.Periods{Zone: time.UTC, Anchor: anchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}}
	clock := &model.TestClock{Key: "history", Now: epoch + now*1e6}
	return model.NewTarget(1, customer, 1, b.limits, periods, clock)
}
