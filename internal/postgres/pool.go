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

// Bounds of a pool where the URL (pool_max_conns=…) and the options say
// nothing. The hot path has connections of its own and needs no pool.
const (
	defaultMaxConns         = 8
	maxConnLifetime         = time.Hour // so that new connections follow a load balancer's changes
	maxConnIdleTime         = 5 * time.Minute
	healthCheckPeriod       = 15 * time.Second
	trustedFor              = time.Second // how long an idle connection needs no round trip to be trusted
	defaultStatementTimeout = 30 * time.Second
)

// PoolOptions configure Open; the zero value is usual.
type PoolOptions struct {
	MaxConns int32 // 0: the URL's pool_max_conns, else 8
	// StatementTimeout is the server's own deadline for each statement, and a
	// guard for those whose caller is gone. 0 is 30 s, negative is none.
	StatementTimeout time.Duration
	// Params are settings of the sessions; they win over the URL's.
	Params map[string]string
	// Serving: while the pool has a connection, MigrateDown is refused.
	Serving bool
}

// Open makes a connection pool for databaseURL. It does not wait for the database, which may
// be out of reach for now. Only a URL that cannot be read is an error (ErrBadURL). Of several
// hosts the one that takes writes is used.
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
		// A transaction left open by a lost caller would hold its locks and
		// keep dead rows of hot tables alive.
		"idle_in_transaction_session_timeout": ms(defaultStatementTimeout),
	}}
	if config.ConnConfig, _, err = login.config(); err != nil {
		return nil, err
	}
	config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		now, _, err := login.config()
		if err == nil {
			now.Tracer = conn.Tracer // what the program has set stays
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
	config.MaxConnLifetimeJitter = config.MaxConnLifetime / 10 // not all at once
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

// ConnectLike opens a connection like those of a pool of Open's, under a name of its own
// (application_name).
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

// doubtful reports whether an idle connection may be dead, so that a round trip has to show it. A
// server that restarts closes the connections of all pools. Without the look each of them would
// fail one request first.
func doubtful(_ context.Context, of pgxpool.ShouldPingParams) bool {
	return of.IdleDuration > trustedFor || hasSpoken(of.Conn.PgConn().Conn())
}

// mentions reports whether a URL or key=value string sets name.
func mentions(databaseURL, name string) bool {
	return regexp.MustCompile(`(?:^|[?&\s])` + regexp.QuoteMeta(name) + `\s*=`).MatchString(databaseURL)
}
