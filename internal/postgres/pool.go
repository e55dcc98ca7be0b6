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

// The limits of a pool if neither the URL (pool_max_conns=…) nor the options specify them. The hot path has
// separate connections and needs no pool.
const (
	defaultMaxConns         = 8
	maxConnLifetime         = time.Hour // so that new connections follow changes of a load balancer
	maxConnIdleTime         = 5 * time.Minute
	healthCheckPeriod       = 15 * time.Second
	trustedFor              = time.Second // time for which an idle connection is trusted without a round trip
	defaultStatementTimeout = 30 * time.Second
)

// PoolOptions are the options of Open. The zero value is the usual configuration.
type PoolOptions struct {
	MaxConns int32 // 0 means the URL's pool_max_conns, or 8 without it
	// StatementTimeout is the server's deadline for each statement, which also ends statements whose caller is
	// gone. 0 means 30 s, and a negative value means no deadline.
	StatementTimeout time.Duration
	// Params are session settings, which override the URL's.
	Params map[string]string
	// Serving makes MigrateDown fail while the pool has a connection.
	Serving bool
}

// Open returns a connection pool for databaseURL. It does not wait for the database, which may be out of reach.
// The only error is ErrBadURL, for a URL that cannot be parsed. If there are several hosts, the pool uses the
// host that accepts writes.
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
		// If a lost caller left a transaction open, the transaction would keep its locks and the dead rows of
		// hot tables.
		"idle_in_transaction_session_timeout": ms(defaultStatementTimeout),
	}}
	if config.ConnConfig, _, err = login.config(); err != nil {
		return nil, err
	}
	config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		now, _, err := login.config()
		if err == nil {
			now.Tracer = conn.Tracer // keep the program's tracer
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

// ConnectLike opens a connection with the configuration of a pool from Open, but with another application_name.
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

// doubtful reports whether an idle connection may be dead, so that a round trip must check it. A server that
// restarts closes the connections of all pools. Without the check, each of these connections would fail one
// request.
func doubtful(_ context.Context, of pgxpool.ShouldPingParams) bool {
	return of.IdleDuration > trustedFor || hasSpoken(of.Conn.PgConn().Conn())
}

// mentions reports whether a URL or key=value string sets name.
func mentions(databaseURL, name string) bool {
	return regexp.MustCompile(`(?:^|[?&\s])` + regexp.QuoteMeta(name) + `\s*=`).MatchString(databaseURL)
}
