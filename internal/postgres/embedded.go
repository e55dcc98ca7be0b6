package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// appName is the role and the database of quotad in its embedded server.
	appName = "quotad"
	// superuser owns the embedded cluster. quotad itself works without it, as
	// it must on a real server.
	superuser = "postgres"

	defaultStartTimeout = 10 * time.Minute // recovery after a crash may read GBs of WAL
	defaultStopTimeout  = time.Minute
	defaultGiveUpAfter  = 2 * time.Minute
)

// EmbeddedOptions configure StartEmbedded. Only DataDir is required.
type EmbeddedOptions struct {
	DataDir string       // made if missing; DefaultDataDir() is the usual one
	BinDir  string       // directory of initdb and postgres; empty: $PGBIN, else searched
	Logger  *slog.Logger // nil: slog.Default()
	// OwnFiles are names of files that the caller keeps in DataDir, readable by
	// itself only.
	OwnFiles []string

	// Settings override quotad's own settings of the server, by name. What
	// keeps the server private cannot be overridden.
	Settings map[string]string
	// StartTimeout bounds the first start, initdb and crash recovery included;
	// 0 is ten minutes.
	StartTimeout time.Duration
	// GiveUpAfter is how long a server that keeps dying is started again
	// before Done is closed; 0 is two minutes.
	GiveUpAfter time.Duration
	// NoSync skips flushing the files that initdb wrote. For tests only.
	NoSync bool
}

// Embedded is a private PostgreSQL server, kept running until Stop.
// Its methods may be called from any goroutine.
type Embedded struct {
	opts     EmbeddedOptions
	log      *slog.Logger
	programs Programs
	account  *account // whom the server runs as; nil: quotad's own user
	layout   layout
	lock     *dirLock
	fresh    bool // its cluster was made just now

	pid    atomic.Int64  // of the running postmaster, 0 while there is none
	done   chan struct{} // closed when supervision ended
	err    error         // why it ended; written before done is closed
	cancel context.CancelFunc

	stopOnce sync.Once
	stopBy   atomic.Pointer[context.Context] // the deadline of Stop
}

// StartEmbedded sets up (once) and starts the server of opts.DataDir, and
// returns when it takes connections. ctx bounds the start only; the server
// runs until Stop. It is started again when it dies.
//
// Errors that callers branch on: ErrDataDirInUse, ErrNoPrograms,
// ErrUnreachableDataDir.
func StartEmbedded(ctx context.Context, opts EmbeddedOptions) (*Embedded, error) {
	if opts.DataDir == "" {
		return nil, errors.New("embedded PostgreSQL: no data directory given")
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.StartTimeout <= 0 {
		opts.StartTimeout = defaultStartTimeout
	}
	if opts.GiveUpAfter <= 0 {
		opts.GiveUpAfter = defaultGiveUpAfter
	}
	ctx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	e := &Embedded{opts: opts, log: opts.Logger, done: make(chan struct{})}
	if err := e.prepare(ctx); err != nil {
		e.release()
		return nil, fmt.Errorf("embedded PostgreSQL in %s: %w", opts.DataDir, err)
	}
	if err := e.launch(ctx); err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL in %s: %w", opts.DataDir, err)
	}
	return e, nil
}

// prepare does all that comes before the server's first start.
func (e *Embedded) prepare(ctx context.Context) error {
	dir, err := filepath.Abs(e.opts.DataDir)
	if err != nil {
		return err
	}
	if err := refuseForeignDir(dir, e.opts.OwnFiles); err != nil {
		return err
	}
	// What is missing above it is made passable, for the server's user.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // passable on purpose
		return chooseAnother("make the data directory", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return chooseAnother("make the data directory", err)
	}
	// Symbolic links are resolved once, so that every later check and every
	// process speaks of the same path.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	e.layout = layout{dir: dir}
	if e.lock, err = lockDir(dir); err != nil {
		return err
	}
	if e.account, err = chooseAccount(e.layout); err != nil {
		return err
	}
	if err = e.account.grantPath(dir, e.opts.OwnFiles); err != nil {
		return err
	}
	major, err := e.layout.major()
	if err != nil {
		return err
	}
	if e.programs, err = FindPrograms(ctx, e.opts.BinDir, major, e.log); err != nil {
		return err
	}
	if err = e.account.checkPrograms(e.programs); err != nil {
		return err
	}
	if err = clearOrphans(ctx, e.layout, e.log); err != nil {
		return err
	}
	e.layout.removeTempSocketDir()
	e.clearPartials()
	if major == 0 {
		if err = e.initialize(ctx); err != nil {
			return err
		}
		e.fresh = true
	}
	if e.layout.socketDir, err = e.account.makeSocketDir(e.layout); err != nil {
		return err
	}
	return e.writeConfig(ctx)
}

// launch starts supervision and waits for the server's first readiness.
func (e *Embedded) launch(ctx context.Context) error {
	superCtx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	ready := make(chan error, 1)
	go e.supervise(superCtx, ctx, ready)
	if err := <-ready; err != nil { // supervise always answers, within ctx
		cancel()
		<-e.done
		return withRemedy(err)
	}
	if err := e.furnish(ctx); err != nil {
		stopCtx, stop := context.WithTimeout(context.Background(), defaultStopTimeout)
		defer stop()
		return errors.Join(err, e.Stop(stopCtx))
	}
	e.log.Info("embedded PostgreSQL is ready", "version", e.programs.Version,
		"data_dir", e.layout.dir, "pid", e.PID(), "user", e.account.String())
	return nil
}

// furnish makes what quotad needs of a running server and is missing.
func (e *Embedded) furnish(ctx context.Context) error {
	conn, err := Connect(ctx, e.AdminURL(), nil)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if err := createDatabase(ctx, conn); err != nil || !e.fresh {
		return err
	}
	return makeWALFiles(ctx, conn, e.layout.dir)
}

// createDatabase makes quotad's role and database where they are missing.
func createDatabase(ctx context.Context, conn *pgx.Conn) error {
	var role, database bool
	err := conn.QueryRow(ctx, `SELECT
		EXISTS (SELECT FROM pg_roles WHERE rolname = $1),
		EXISTS (SELECT FROM pg_database WHERE datname = $1)`, appName).Scan(&role, &database)
	if err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	var statements []string
	if !role {
		// One statement string is one transaction: no role without its grant.
		statements = append(statements, "CREATE ROLE quotad LOGIN; GRANT pg_monitor TO quotad")
	}
	if !database {
		statements = append(statements, "CREATE DATABASE quotad OWNER quotad")
	}
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// URL is quotad's own database over the private socket. It stays the same for
// the life of e, through restarts of the server.
func (e *Embedded) URL() string { return e.layout.url(appName, appName) }

// AdminURL is the maintenance database as the cluster's superuser.
func (e *Embedded) AdminURL() string { return e.layout.url(superuser, "postgres") }

// PID is the process of the running postmaster, 0 while there is none.
func (e *Embedded) PID() int { return int(e.pid.Load()) }

// Programs are those the server runs from.
func (e *Embedded) Programs() Programs { return e.programs }

// Done is closed when the server is stopped for good: after Stop, or when it
// kept dying and was given up. Err then tells which.
func (e *Embedded) Done() <-chan struct{} { return e.done }

// Err is nil before Done and after an orderly Stop, else why the server was
// given up.
func (e *Embedded) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

// Stop shuts the server down: fast (open transactions are rolled back, all is
// flushed), and at once when ctx ends, which leaves recovery to the next
// start. Without a deadline in ctx there is one of a minute. Nothing of e
// runs any more when it returns; calling it again is allowed.
func (e *Embedded) Stop(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultStopTimeout)
		defer cancel()
	}
	e.stopOnce.Do(func() {
		e.stopBy.Store(&ctx)
		e.cancel()
	})
	<-e.done // supervise bounds every step of a stop
	return e.err
}

// release gives back what the data directory's owner holds.
func (e *Embedded) release() {
	if e.lock != nil {
		e.layout.removeTempSocketDir()
		e.lock.release()
	}
}

// url builds a connection URL over the socket.
func (l layout) url(user, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(user),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {l.socketDir}, "port": {socketPort}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}
