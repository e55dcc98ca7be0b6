package quota

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/calendar"
	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
)

// testEpoch is 2026-03-01T00:00:00Z, where a minute, an hour, a day and a month begin.
const testEpoch = int64(1_772_323_200_000_000)

// testDB is a database of the test's own, with a pool for looking at it.
type testDB struct {
	url  string
	pool *pgxpool.Pool
}

func newTestDB(t testing.TB) *testDB {
	t.Helper()
	db := &testDB{url: pgtest.NewDatabase(t)}
	var err error
	if db.pool, err = postgres.Open(pgtest.Context(t), db.url, postgres.PoolOptions{Params: PoolSettings}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.pool.Close)
	return db
}

// connect opens a session as a lane does.
func (db *testDB) connect(ctx context.Context) (*pgx.Conn, error) {
	return postgres.Connect(ctx, db.url, SessionSettings)
}

// connectBy is connect by connections of the test's own.
func (db *testDB) connectBy(wrap func(net.Conn) net.Conn) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(db.url)
		if err != nil {
			return nil, err
		}
		dial := config.DialFunc
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return wrap(conn), nil
		}
		maps.Copy(config.RuntimeParams, SessionSettings)
		return pgx.ConnectConfig(ctx, config)
	}
}

// session is such a session, closed with the test.
func (db *testDB) session(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := db.connect(pgtest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// testClock is the one clock of a test's engines; it goes where it is set.
type testClock struct{ at atomic.Int64 }

func newTestClock(at int64) *testClock {
	c := new(testClock)
	c.at.Store(at)
	return c
}

func (c *testClock) now(context.Context) (int64, error) { return c.at.Load(), nil }
func (c *testClock) set(at int64)                       { c.at.Store(at) }

func (db *testDB) options(c *testClock) Options {
	start := time.Now()
	return Options{
		Connect: db.connect, Pool: db.pool, Now: c.now, Wall: time.Now,
		Stopwatch: func() time.Duration { return time.Since(start) },
	}
}

// startEngine starts one of any number of engines on the database; it ends with the test.
func (db *testDB) startEngine(t testing.TB, c *testClock, change ...func(*Options)) *Engine {
	t.Helper()
	o := db.options(c)
	for _, f := range change {
		f(&o)
	}
	e, err := NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// withoutMemory has every hit decided by a statement.
func withoutMemory(o *Options) { o.MemoryUsable = func() bool { return false } }

// handEngine is an engine whose one lane stands still: the test sends its batches.
func (db *testDB) handEngine(t testing.TB, c *testClock) *Engine {
	t.Helper()
	e, err := newEngine(db.options(c))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session{&e.lanes[0].session, &e.ledgers[0].session} {
		t.Cleanup(s.close)
		for s.ready(pgtest.Context(t)) != nil && pgtest.Context(t).Err() == nil { // it is being made
		}
	}
	return e
}

// sendBatch decides hits as one batch of a lane that stands still, and sends what is handed
// back, or over to the ledger, until nothing is left. It returns the results and the number of
// batches.
func (e *Engine) sendBatch(ctx context.Context, hits []Hit) ([]Result, int) {
	l := e.lanes[0]
	batch := make([]*hit, len(hits))
	for i, h := range hits {
		batch[i] = &hit{ticket: newTicket(&l.session), target: h.Target, cost: h.Cost}
	}
	results, batches := make([]Result, len(hits)), 0
	for l.again = slices.Clone(batch); ; batches++ {
		if len(l.again) > 0 {
			l.next(ctx)
		} else if l.ledger.queued()+len(l.ledger.again) > 0 {
			l.ledger.next(ctx)
		} else {
			break
		}
	}
	for i, h := range batch {
		<-h.done
		results[i] = h.result
	}
	return results, batches
}

func mustCompile(t testing.TB, s Spec) *Limit {
	t.Helper()
	l, bad := Compile(s)
	if bad != nil {
		t.Fatal(bad)
	}
	return l
}

func windowLimit(t testing.TB, name string, limit int64, window string) *Limit {
	t.Helper()
	return mustCompile(t, Spec{Name: name, Algorithm: "fixed_window", Limit: limit, Window: window})
}

func bucketLimit(t testing.TB, name string, limit int64, window string, burst int64) *Limit {
	t.Helper()
	return mustCompile(t, Spec{Name: name, Algorithm: "token_bucket", Limit: limit, Window: window, Burst: &burst})
}

var testAnchor = func() calendar.Anchor {
	a, err := calendar.ParseAnchor("2026-01-31T00:17:00") // cuts an hour
	if err != nil {
		panic(err)
	}
	return a
}()

// testTarget has one counter, the customer's own. Its hours are UTC's, its periods begin
// at 17 minutes past midnight.
func testTarget(customer int64, meter int32, change int64, limits ...*Limit) *Target {
	return &Target{
		Change: change, Counters: []Counter{{CounterKey{customer, meter, ""}, limits}},
		Periods: calendar.Periods{Zone: time.UTC, Anchor: testAnchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}},
	}
}

// withCounter returns a copy of the target that also charges the counter of an attribute's value.
func withCounter(t *Target, attribute string, limits ...*Limit) *Target {
	c := CounterKey{t.Counters[0].Key.Customer, t.Counters[0].Key.Meter, attribute}
	return &Target{
		Change: t.Change, Counters: append(slices.Clone(t.Counters), Counter{c, limits}),
		Periods: t.Periods,
	}
}

var lastCustomer atomic.Int64

// freshCustomers returns the first of n customers that no test has used.
func freshCustomers(n int) int64 { return lastCustomer.Add(int64(n)) - int64(n) + 1 }

// counterRow is a counter as it is stored.
type counterRow struct {
	row
	hour, units, total int64
}

// counters reads all rows of a customer.
func (db *testDB) counters(ctx context.Context, customer int64) (map[CounterKey]counterRow, error) {
	rows, err := db.pool.Query(ctx, `SELECT meter, attribute, state, at, version, change, hour, units, total
		FROM counters WHERE shard = $1 AND customer = $2`, Shard(customer), customer)
	if err != nil {
		return nil, err
	}
	all := make(map[CounterKey]counterRow)
	_, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (struct{}, error) {
		var c counterRow
		key := CounterKey{Customer: customer}
		err := r.Scan(&key.Meter, &key.Attribute, &c.state, &c.at, &c.version, &c.change, &c.hour, &c.units, &c.total)
		all[key] = c
		return struct{}{}, err
	})
	return all, err
}

// usageKey is one hour of one meter.
type usageKey struct {
	meter int32
	hour  int64
}

// admitted reads a customer's usage table without the running hours.
func (db *testDB) admitted(ctx context.Context, customer int64) (map[usageKey]int64, error) {
	rows, err := db.pool.Query(ctx, `SELECT meter, hour, admitted FROM usage
		WHERE shard = $1 AND customer = $2 AND admitted <> 0`, Shard(customer), customer)
	if err != nil {
		return nil, err
	}
	all := make(map[usageKey]int64)
	var k usageKey
	var units int64
	_, err = pgx.ForEachRow(rows, []any{&k.meter, &k.hour, &units}, func() error {
		all[k] = units
		return nil
	})
	return all, err
}

func sortedKeys[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }
