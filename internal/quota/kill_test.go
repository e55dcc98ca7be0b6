package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// tally is what the callers of a run through failures know: units that were
// acknowledged, and units whose outcome was lost, by customer.
type tally struct {
	mu           sync.Mutex
	acknowledged map[int64]int64
	unknown      map[int64]int64
	answers      atomic.Int64  // of any kind
	lost         atomic.Int64  // unknown outcomes
	decided      *atomic.Int64 // of the run: its clock
	blindRetry   bool          // the mutant: what is unknown is sent again
}

// fire sends hits until ctx ends.
func (l *tally) fire(ctx context.Context, e *Engine, targets []*model.Target, r *rand.Rand) error {
	for ctx.Err() == nil {
		target, cost := targets[r.IntN(len(targets))], 1+r.Int64N(5)
		d, err := e.Decide(context.WithoutCancel(ctx), target, cost)
		for l.blindRetry && errors.Is(err, session.ErrOutcomeUnknown) {
			l.lost.Add(1)
			d, err = e.Decide(context.WithoutCancel(ctx), target, cost)
		}
		customer := target.Counters[0].Key.Customer
		l.mu.Lock()
		switch {
		case err == nil && d.Allowed:
			l.acknowledged[customer] += cost
		case errors.Is(err, session.ErrOutcomeUnknown):
			l.unknown[customer] += cost
			l.lost.Add(1)
		}
		l.mu.Unlock()
		switch {
		case err == nil || errors.Is(err, session.ErrOutcomeUnknown):
			l.answers.Add(1)
			l.decided.Add(1)
		case errors.Is(err, session.ErrUnavailable):
			select { // the server is down: do not spin
			case <-ctx.Done():
			case <-time.After(2 * time.Millisecond):
			}
		default:
			return err
		}
	}
	return nil
}

// check compares the tally with what is stored: acknowledged ≤ charged ≤ acknowledged +
// unknown for every customer, usage equal to what was charged, and no limit passed.
func (l *tally) check(t testing.TB, url string) error {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `
		SELECT customer, total, state[2], units + coalesce((SELECT sum(admitted) FROM usage u
			WHERE u.shard = c.shard AND u.customer = c.customer AND u.meter = c.meter), 0)
		FROM counters c WHERE attribute = ''`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var customer, charged, used, booked int64
		if err := rows.Scan(&customer, &charged, &used, &booked); err != nil {
			t.Fatal(err)
		}
		seen++
		limit := limitFor(customer)
		low, high := l.acknowledged[customer], l.acknowledged[customer]+l.unknown[customer]
		switch {
		case charged < low || charged > high:
			return fmt.Errorf("customer %d: %d units charged, %d acknowledged, %d unknown", customer, charged, low, high-low)
		case charged > limit || used != charged:
			return fmt.Errorf("customer %d: %d units charged, %d used of a limit of %d", customer, charged, used, limit)
		case booked != charged:
			return fmt.Errorf("customer %d: %d units charged, %d booked as usage", customer, charged, booked)
		}
	}
	if rows.Err() != nil || seen == 0 {
		t.Fatalf("%d counters: %v", seen, rows.Err())
	}
	return nil
}

// limitFor is what a customer of the run may use: half of them reach their limit in it.
func limitFor(customer int64) int64 {
	if customer%2 == 0 {
		return 300
	}
	return 1_000_000
}

// survive fires from several engines while strike is called times over, each time after
// some more answers came through, and checks the tally.
func survive(t testing.TB, f *fire, times int, l *tally, strike func()) error {
	t.Helper()
	l.acknowledged, l.unknown = make(map[int64]int64), make(map[int64]int64)
	var targets []*model.Target
	for c := int64(1); c <= 40; c++ {
		targets = append(targets, fireTarget(c, []*model.Limit{quotatest.Limit(t, "total", "fixed_window", "3660d", limitFor(c))}))
	}
	f.start, f.speed, l.decided = time.Now(), 2_000_000, &f.decided
	ctx, stop := context.WithCancel(testkit.Context(t))
	defer stop()
	pool, err := postgres.Open(ctx, f.url, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var engines []*Engine
	var wg sync.WaitGroup
	errs := make([]error, 4*16)
	for n := range 4 {
		e := f.engine(t, pool, 0)
		engines = append(engines, e)
		for c := range 16 {
			id := n*16 + c
			wg.Go(func() { errs[id] = l.fire(ctx, e, targets, rand.New(rand.NewPCG(f.seed, uint64(id)))) })
		}
	}
	// A strike may meet reads alone. Then there are more: a run in which no outcome was lost proves nothing.
	for n := 0; n < times || l.lost.Load() == 0 && n < 10*times; n++ {
		l.await(ctx, t, 500)
		strike()
	}
	l.await(ctx, t, 500)
	stop()
	wg.Wait()
	for _, e := range engines {
		if err := e.Close(testkit.Context(t)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.Logf("%d answers, %d unknown outcomes in flight", l.answers.Load(), l.lost.Load())
	if l.lost.Load() == 0 {
		t.Error("no outcome was ever lost: this run proves nothing")
	}
	return l.check(t, f.url)
}

// await returns when more answers came.
func (l *tally) await(ctx context.Context, t testing.TB, more int64) {
	t.Helper()
	for goal := l.answers.Load() + more; l.answers.Load() < goal; {
		select {
		case <-ctx.Done():
			t.Fatal("no answers come any more")
		case <-time.After(time.Millisecond):
		}
	}
}

// strikes returns how often the tests without More in their names strike. The tests with More strike moreStrikes times.
func strikes() int { return quotatest.Sized(3, 5, 200) }

const moreStrikes = 15

func TestKilledServer(t *testing.T)     { killServer(t, strikes()) }
func TestMoreKilledServer(t *testing.T) { killServer(t, moreStrikes) }

// killServer crashes the server so many times under fire.
func killServer(t *testing.T, times int) {
	t.Helper()
	server := pgtest.Server(t)
	f := &fire{url: server.URL(), seed: testkit.Seed(t)}
	if err := survive(t, f, times, new(tally), func() { server.Crash(); server.WaitReady() }); err != nil {
		t.Error(err)
	}
}

func TestTerminatedBackends(t *testing.T)     { terminateBackends(t, strikes()) }
func TestMoreTerminatedBackends(t *testing.T) { terminateBackends(t, moreStrikes) }

// terminateBackends ends all sessions so many times under fire.
func terminateBackends(t *testing.T, times int) {
	t.Helper()
	server := pgtest.Server(t)
	conn, err := pgx.Connect(testkit.Context(t), server.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	f := &fire{url: server.URL(), seed: testkit.Seed(t)}
	err = survive(t, f, times, new(tally), func() {
		if _, err := conn.Exec(testkit.Context(t),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'quotad'"); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLostAnswers cuts connections right after the server has answered, so that what was
// charged is not acknowledged. A blind retry, the mutant, then charges twice.
func TestLostAnswers(t *testing.T)     { loseAnswers(t, max(8, strikes())) }
func TestMoreLostAnswers(t *testing.T) { loseAnswers(t, moreStrikes) }

// loseAnswers loses so many answers under fire, or more if a blind retry was lucky.
func loseAnswers(t *testing.T, times int) {
	t.Helper()
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprintf("blind retry %v", blind), func(t *testing.T) {
			var cut atomic.Int64
			seed := testkit.Seed(t)
			lossy := func(c *pgx.ConnConfig) {
				dial := c.DialFunc
				c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return &lossyConn{Conn: conn, cut: &cut}, err
				}
			}
			// Some meet reads, after which a blind retry charges nothing twice. One run may be lucky.
			var err error
			for runs := 0; runs == 0 || blind && err == nil && runs < 10; runs++ {
				one := &fire{url: pgtest.NewDatabase(t), seed: seed + uint64(runs), connect: lossy}
				err = survive(t, one, times, &tally{blindRetry: blind}, func() { cut.Add(1) })
			}
			if blind && err == nil {
				t.Error("the blind retry went unnoticed")
			} else if blind {
				t.Log("caught:", err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// lossyConn loses an answer of the server and the connection with it, once for each cut.
type lossyConn struct {
	net.Conn
	cut *atomic.Int64
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.cut.Load() > 0 && c.cut.Add(-1) >= 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}
