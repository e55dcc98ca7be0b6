package quota

import (
	"context"
	"maps"
	"net"
	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// kitDB is a database of the test's own, with a pool for looking at it.
type kitDB struct {
	URL  string
	Pool *pgxpool.Pool
}

func newKitDB(t testing.TB) *kitDB {
	t.Helper()
	db := &kitDB{URL: pgtest.NewDatabase(t)}
	var err error
	if db.Pool, err = postgres.Open(pgtest.Context(t), db.URL, postgres.PoolOptions{Params: PoolSettings}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Pool.Close)
	return db
}

// Connect opens a session as a lane does.
func (db *kitDB) Connect(ctx context.Context) (*pgx.Conn, error) {
	return postgres.Connect(ctx, db.URL, SessionSettings)
}

// ConnectBy is connect by connections of the test's own.
func (db *kitDB) ConnectBy(wrap func(net.Conn) net.Conn) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(db.URL)
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

// Session is such a session, closed with the test.
func (db *kitDB) Session(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := db.Connect(pgtest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Exec runs a statement.
func (db *kitDB) Exec(ctx context.Context, t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// deadlocks is how many the server counted in a database.
func deadlocks(t testing.TB, url string) (n int64) {
	t.Helper()
	ctx := context.WithoutCancel(pgtest.Context(t))
	conn, err := postgres.Connect(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// counterRow is a counter as it is stored.
type counterRow struct {
	row
	Hour, Units, Total int64
}

// Counters reads all rows of a customer.
func (db *kitDB) Counters(ctx context.Context, customer int64) (map[CounterKey]counterRow, error) {
	rows, err := db.Pool.Query(ctx, `SELECT meter, attribute, state, at, version, change, hour, units, total
		FROM counters WHERE shard = $1 AND customer = $2`, Shard(customer), customer)
	if err != nil {
		return nil, err
	}
	all := make(map[CounterKey]counterRow)
	_, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (struct{}, error) {
		var c counterRow
		key := CounterKey{Customer: customer}
		err := r.Scan(&key.Meter, &key.Attribute, &c.state, &c.at, &c.version, &c.change, &c.Hour, &c.Units, &c.Total)
		all[key] = c
		return struct{}{}, err
	})
	return all, err
}

// usageKey is one hour of one meter.
type usageKey struct {
	Meter int32
	Hour  int64
}

// Admitted reads a customer's usage table without the running hours.
func (db *kitDB) Admitted(ctx context.Context, customer int64) (map[usageKey]int64, error) {
	rows, err := db.Pool.Query(ctx, `SELECT meter, hour, admitted FROM usage
		WHERE shard = $1 AND customer = $2 AND admitted <> 0`, Shard(customer), customer)
	if err != nil {
		return nil, err
	}
	all := make(map[usageKey]int64)
	var k usageKey
	var units int64
	_, err = pgx.ForEachRow(rows, []any{&k.Meter, &k.Hour, &units}, func() error {
		all[k] = units
		return nil
	})
	return all, err
}
