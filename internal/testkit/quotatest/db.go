package quotatest

import (
	"context"
	"maps"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// DB is a database of the test's own, with a pool for looking at it.
type DB struct {
	URL  string
	Pool *pgxpool.Pool
}

// NewDB is a new database, dropped with the test.
func NewDB(t testing.TB) *DB {
	t.Helper()
	db := &DB{URL: pgtest.NewDatabase(t)}
	settings := maps.Clone(session.PoolSettings)
	settings["idle_in_transaction_session_timeout"] = "0" // tests hold rows for as long as they look
	var err error
	if db.Pool, err = postgres.Open(testkit.Context(t), db.URL, postgres.PoolOptions{Params: settings, StatementTimeout: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Pool.Close)
	// Tests make up the change numbers of their targets. All of them are of changes that there were.
	if _, err := db.Pool.Exec(testkit.Context(t), `UPDATE change_number SET number = $1`, int64(1)<<40); err != nil {
		t.Fatal(err)
	}
	return db
}

// Connect opens a session as a lane does.
func (db *DB) Connect(ctx context.Context) (*pgx.Conn, error) {
	return postgres.Connect(ctx, db.URL, session.SessionSettings)
}

// ConnectBy is connect by connections of the test's own.
func (db *DB) ConnectBy(wrap func(net.Conn) net.Conn) func(context.Context) (*pgx.Conn, error) {
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
		maps.Copy(config.RuntimeParams, session.SessionSettings)
		return pgx.ConnectConfig(ctx, config)
	}
}

// Session is such a session whose statements may take their time, closed with the test.
func (db *DB) Session(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := db.Connect(testkit.Context(t))
	if err == nil {
		_, err = conn.Exec(testkit.Context(t), "SET statement_timeout = 0")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// PoolSession is a session with the settings of the engine's pool, and a plan_cache_mode. It is
// closed with the test.
func (db *DB) PoolSession(t testing.TB, mode string) *pgx.Conn {
	t.Helper()
	settings := maps.Clone(session.PoolSettings)
	settings["plan_cache_mode"] = mode
	conn, err := postgres.Connect(testkit.Context(t), db.URL, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// HoldRow locks the rows of a customer's counters in a transaction, which the server ends after
// two seconds unless it lasts.
func (db *DB) HoldRow(ctx context.Context, t testing.TB, customer int64, lasts bool) pgx.Tx {
	t.Helper()
	tx, err := db.Session(t).Begin(ctx)
	if err == nil && lasts {
		_, err = tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	}
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT FROM counters WHERE customer = $1 FOR UPDATE", customer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// Exec runs a statement.
func (db *DB) Exec(ctx context.Context, t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Fill is Exec for a statement that may take as long as it takes.
func (db *DB) Fill(ctx context.Context, t testing.TB, sql string, args ...any) {
	t.Helper()
	err := pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0")
		if err == nil {
			_, err = tx.Exec(ctx, sql, args...)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Deadlocks is how many the server counted in a database.
func Deadlocks(t testing.TB, url string) (n int64) {
	t.Helper()
	ctx := context.WithoutCancel(testkit.Context(t))
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

// CounterRow is a counter as it is stored.
type CounterRow struct {
	model.Row
	Hour, Units, Total int64
}

// Counters reads all rows of a customer.
func (db *DB) Counters(ctx context.Context, customer int64) (map[model.CounterKey]CounterRow, error) {
	rows, err := db.Pool.Query(ctx, `SELECT meter, attribute, state, at, version, change, hour, units, total
		FROM counters WHERE shard = $1 AND customer = $2`, model.Shard(customer), customer)
	if err != nil {
		return nil, err
	}
	all := make(map[model.CounterKey]CounterRow)
	_, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (struct{}, error) {
		var c CounterRow
		key := model.CounterKey{Customer: customer}
		err := r.Scan(&key.Meter, &key.Attribute, &c.State, &c.At, &c.Version, &c.Change, &c.Hour, &c.Units, &c.Total)
		all[key] = c
		return struct{}{}, err
	})
	return all, err
}

// UsageKey is one hour of one meter.
type UsageKey struct {
	Meter int32
	Hour  int64
}

// Admitted reads a customer's usage table without the running hours.
func (db *DB) Admitted(ctx context.Context, customer int64) (map[UsageKey]int64, error) {
	rows, err := db.Pool.Query(ctx, `SELECT meter, hour, admitted FROM usage
		WHERE shard = $1 AND customer = $2 AND admitted <> 0`, model.Shard(customer), customer)
	if err != nil {
		return nil, err
	}
	all := make(map[UsageKey]int64)
	var k UsageKey
	var units int64
	_, err = pgx.ForEachRow(rows, []any{&k.Meter, &k.Hour, &units}, func() error {
		all[k] = units
		return nil
	})
	return all, err
}
