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
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/calendar"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// This file lets engines fire at the same counters from many nodes and keeps every
// decision; replay_test.go then plays them through the Go model, one by one.

// fire is one such run.
type fire struct {
	url       string
	seed      uint64
	engines   int
	callers   int                   // of each engine
	rounds    int                   // hits of each caller
	customers int                   // besides the hot one, which takes half of all hits
	speed     int64                 // virtual µs for each decision: the same on any machine
	mutate    func(*Engine)         // breaks an engine, for mutants
	connect   func(*pgx.ConnConfig) // changes a lane's connection

	start         time.Time
	decided       atomic.Int64
	swapped, lost int64 // swaps

	hot  []*model.Target // on one customer, sharing counters
	cold []*model.Target
}

// shot is a decision as its caller got it.
type shot struct{ model.Decision }

const fireEpoch = int64(1_772_323_200_000_000) // 2026-03-01T00:00:00Z

func fireTarget(customer int64, limits []*model.Limit, values ...string) *model.Target {
	anchor, err := calendar.ParseAnchor("2026-01-31T00:17:00")
	if err != nil {
		panic(err)
	}
	t := &model.Target{Change: 1, Periods: calendar.Periods{Zone: time.UTC, Anchor: anchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}}}
	t.Counters = append(t.Counters, model.Counter{Key: model.CounterKey{Customer: customer, Meter: 1, Attribute: ""}, Limits: limits})
	for _, v := range values {
		t.Counters = append(t.Counters, model.Counter{Key: model.CounterKey{Customer: customer, Meter: 1, Attribute: v}, Limits: limits[:1]})
	}
	return t
}

// prepare makes the targets. The window of the total never ends in a run, so that what
// it admits in all is known; the bucket refills and the other windows pass meanwhile.
func (f *fire) prepare(t testing.TB, total int64) {
	t.Helper()
	f.start = time.Now()
	pgtest.Exec(t, f.url, "UPDATE change_number SET number = 2") // the targets' changes
	limits := func(total int64) []*model.Limit {
		return []*model.Limit{
			quotatest.Limit(t, "total", "fixed_window", "3660d", total),
			quotatest.Limit(t, "bucket", "token_bucket", "1h", total, total/2),
			quotatest.Limit(t, "minute", "fixed_window", "1m", total/3),
		}
	}
	first := quotatest.Compile(t, model.Spec{Name: "first", Algorithm: "fixed_window", Limit: total / 4, Window: "45s", Align: "first_hit"})
	sliding := quotatest.Limit(t, "sliding", "sliding_window", "50s", total/4)
	day := quotatest.Limit(t, "day", "fixed_window", "calendar_day", total*9/10)
	log := quotatest.Compile(t, model.Spec{Name: "log", Algorithm: "sliding_log", Limit: total / 4, Window: "40s", Precision: "1s"})
	soft := quotatest.Compile(t, model.Spec{Name: "soft", Algorithm: "token_bucket", Limit: total, Window: "1h", Mode: "soft"})
	shadow := quotatest.Compile(t, model.Spec{Name: "shadow", Algorithm: "sliding_window", Limit: total / 10, Window: "30s", Mode: "shadow"})
	ahead := quotatest.Compile(t, model.Spec{Name: "ahead", Algorithm: "sliding_log", Limit: 30, Window: "10s", Mode: "shadow"})
	hot := append(limits(total*int64(f.customers)), shadow, ahead)
	f.hot = []*model.Target{
		fireTarget(1000, hot), fireTarget(1000, hot, "ip=1"), fireTarget(1000, hot, "ip=2"), fireTarget(1000, hot, "ip=1", "ip=2"),
	}
	ip := quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "sliding_log", Limit: total / 5, Window: "2m", Precision: "5s", Per: "ip"})
	user := quotatest.Compile(t, model.Spec{Name: "user", Algorithm: "token_bucket", Limit: total / 3, Window: "1h", Per: "user"})
	plans := [][]*model.Limit{
		append(limits(total), first, sliding, day, log, soft, shadow),
		append(limits(total), log, ip, soft),
		append(limits(total), user, ip, shadow),
		append(limits(total), first, sliding, soft, shadow),
		limits(total), // the rest are swapped
		append(limits(total), soft),
		limits(total)[:2],
	}
	for i := range f.customers {
		limits, like := plans[i%len(plans)], fireTarget(0, nil)
		f.cold = append(f.cold, model.NewTarget(1, int64(i+1), 1, limits, like.Periods, nil))
		if i%4 == 0 { // as a node has resolved it again
			f.cold = append(f.cold, model.NewTarget(1, int64(i+1), 1, limits, like.Periods, nil))
		}
	}
}

// engine starts one node, whose clock is off by its skew.
func (f *fire) engine(t testing.TB, pool *pgxpool.Pool, skew time.Duration) *Engine {
	t.Helper()
	e, err := newEngine(Options{
		Pool:      pool,
		Wall:      time.Now,
		Patience:  testkit.Patience,
		Stopwatch: func() time.Duration { return time.Since(f.start) },
		Now: func(context.Context) (int64, error) {
			return fireEpoch + f.decided.Load()*f.speed + skew.Microseconds(), nil
		},
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			config, err := pgx.ParseConfig(f.url)
			if err != nil {
				return nil, err
			}
			for k, v := range session.SessionSettings {
				config.RuntimeParams[k] = v
			}
			if f.connect != nil {
				f.connect(config)
			}
			return pgx.ConnectConfig(ctx, config)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.mutate != nil {
		f.mutate(e)
	}
	e.start()
	return e
}

// run fires and returns all decisions; an error of any hit fails the run.
func (f *fire) run(t testing.TB) ([]shot, error) {
	t.Helper()
	ctx := testkit.Context(t)
	pool, err := postgres.Open(ctx, f.url, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var wg sync.WaitGroup
	all := make([][]shot, f.engines*f.callers)
	errs := make([]error, f.engines*f.callers)
	for n := range f.engines {
		e := f.engine(t, pool, time.Duration(n-f.engines/2)*2*time.Second)
		defer func() {
			if err := e.Close(ctx); err != nil {
				t.Error(err)
			}
			s := e.Stats()
			f.swapped, f.lost = f.swapped+s.Swapped, f.lost+s.SwapsLost
		}()
		for c := range f.callers {
			id := n*f.callers + c
			wg.Go(func() { all[id], errs[id] = f.caller(ctx, e, rand.New(rand.NewPCG(f.seed, uint64(id)))) })
		}
	}
	wg.Wait()
	var shots []shot
	for _, s := range all {
		shots = append(shots, s...)
	}
	return shots, errors.Join(errs...)
}

// caller sends its hits one after the other, as one client connection would.
func (f *fire) caller(ctx context.Context, e *Engine, r *rand.Rand) ([]shot, error) {
	shots := make([]shot, 0, f.rounds)
	packed := make(map[*model.Target][]byte)
	for range f.rounds {
		target := f.hot[r.IntN(len(f.hot))]
		if r.IntN(2) == 0 {
			target = f.cold[r.IntN(len(f.cold))].For(map[string]string{"ip": fmt.Sprint(r.IntN(3)), "user": fmt.Sprint(r.IntN(2))})
		}
		// What is known of a row may be nothing, and as old as it likes.
		switch of := target.Base(); r.IntN(16) {
		case 0:
			of.Forget()
		case 1:
			packed[of] = of.AppendRow(nil, f.start.UnixMicro())
		case 2:
			of.LearnRow(packed[of], f.start.UnixMicro())
		}
		cost := 1 + r.Int64N(20)
		d, err := e.Decide(ctx, target, cost)
		for errors.Is(err, session.ErrUnavailable) && ctx.Err() == nil { // its session is still being made
			d, err = e.Decide(ctx, target, cost)
		}
		switch {
		case err != nil:
			return shots, fmt.Errorf("a hit on %v: %w", target.Counters[0].Key, err)
		default:
			f.decided.Add(1)
			shots = append(shots, shot{d})
		}
	}
	return shots, nil
}
