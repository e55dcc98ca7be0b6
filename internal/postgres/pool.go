package postgres

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The bounds of a pool if neither the URL (pool_max_conns=…) nor the options set them. The hot path needs no
// pool, because it has connections of its own.
const (
	defaultMaxConns         = 8
	maxConnLifetime         = time.Hour // new connections follow a load balancer's changes
	maxConnIdleTime         = 5 * time.Minute
	healthCheckPeriod       = 15 * time.Second
	trustedFor              = time.Second // the idle time after which a round trip tests a connection
	defaultStatementTimeout = 30 * time.Second
)

// PoolOptions are the options of Open. The zero value is the usual configuration.
type PoolOptions struct {
	MaxConns int32 // 0 means the URL's pool_max_conns, or 8 if the URL has none
	// StatementTimeout is the server's deadline for each statement. It also ends statements whose caller is
	// gone. 0 means 30 s, and a negative value means no deadline.
	StatementTimeout time.Duration
	// Params are settings of the sessions. They override the settings in the URL.
	Params map[string]string
	// Serving marks the pool of a node that serves: MigrateDown is refused while the pool has a connection.
	Serving bool
}

// Open returns a connection pool for databaseURL. It does not wait for the database, which may be out of reach.
// The only error is that of a URL that cannot be read (ErrBadURL). Of several hosts, the pool uses the host that
// accepts writes.
func Open(ctx context.Context, databaseURL string, opts PoolOptions) (*pgxpool.Pool, error) {
	text, err := textOf(databaseURL)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, badURL(text, err)
	}
	timeout := opts.StatementTimeout
	if timeout == 0 {
		timeout = defaultStatementTimeout
	}
	ms := func(d time.Duration) string { return strconv.FormatInt(max(d, 0).Milliseconds(), 10) }
	login := &login{url: databaseURL, params: maps.Clone(opts.Params), defaults: map[string]string{
		"statement_timeout": ms(timeout),
		// A transaction whose caller is gone would keep its locks, and would keep dead rows in hot tables.
		"idle_in_transaction_session_timeout": ms(defaultStatementTimeout),
	}}
	if config.ConnConfig, _, err = login.config(); err != nil {
		return nil, err
	}
	config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		now, _, err := login.config()
		if err == nil {
			now.Tracer = conn.Tracer // keeps the program's tracer
			*conn = *now
		}
		return err
	}

	given := config.ConnConfig.ConnString()
	switch {
	case opts.MaxConns > 0:
		config.MaxConns = opts.MaxConns
	case !mentions(given, "pool_max_conns"):
		config.MaxConns = defaultMaxConns
	}
	if !mentions(given, "pool_max_conn_lifetime") {
		config.MaxConnLifetime = maxConnLifetime
	}
	config.MaxConnLifetimeJitter = config.MaxConnLifetime / 10 // connections do not end all at once
	if !mentions(given, "pool_max_conn_idle_time") {
		config.MaxConnIdleTime = maxConnIdleTime
	}
	if !mentions(given, "pool_health_check_period") {
		config.HealthCheckPeriod = healthCheckPeriod
	}
	config.ShouldPing = doubtful
	if opts.Serving {
		config.AfterConnect = holdSchema
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database pool: %w", err)
	}
	return pool, nil
}

// ConnectLike opens a connection with the settings of a pool that Open returned, under an own application_name.
func ConnectLike(ctx context.Context, pool *pgxpool.Pool, name string) (*pgx.Conn, error) {
	config := pool.Config()
	if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil && config.AfterConnect != nil {
		if err = config.AfterConnect(ctx, conn); err != nil {
			CloseConn(conn)
		}
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// doubtful reports whether an idle connection may be broken, so that a round trip must test it. A server that
// restarts closes the connections of all pools. Without the test, each of these connections would fail one
// request.
func doubtful(_ context.Context, of pgxpool.ShouldPingParams) bool {
	return of.IdleDuration > trustedFor || hasSpoken(of.Conn.PgConn().Conn())
}

// mentions reports whether a URL or key=value string sets name.
func mentions(databaseURL, name string) bool {
	return regexp.MustCompile(`(?:^|[?&\s])` + regexp.QuoteMeta(name) + `\s*=`).MatchString(databaseURL)
}
