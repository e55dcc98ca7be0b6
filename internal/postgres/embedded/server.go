package embedded

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

	"quotad/internal/postgres"
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

// Options configure Start. Only DataDir is required.
type Options struct {
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

// Server is a private PostgreSQL server, kept running until Stop.
// Its methods may be called from any goroutine.
type Server struct {
	opts     Options
	log      *slog.Logger
	programs Programs
	account  *account // the user that runs the server; nil: quotad's own
	layout   layout
	lock     *dirLock
	fresh    bool // this start has made the cluster

	pid    atomic.Int64  // of the running postmaster, 0 while there is none
	done   chan struct{} // closed when supervision ended
	err    error         // why supervision ended; written before done is closed
	cancel context.CancelFunc

	stopOnce sync.Once
	stopBy   atomic.Pointer[context.Context] // the deadline of Stop
}

// Start starts the server of opts.DataDir, and makes its data at the first time. It returns
// when the server takes connections. ctx bounds only the start: the server runs until Stop. It
// is started again when it dies.
//
// Errors that callers branch on: ErrDataDirInUse, ErrNoPrograms, ErrUnreachableDataDir.
func Start(ctx context.Context, opts Options) (*Server, error) {
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
	s := &Server{opts: opts, log: opts.Logger, done: make(chan struct{})}
	if err := s.prepare(ctx); err != nil {
		s.release()
		return nil, fmt.Errorf("embedded PostgreSQL in %s: %w", opts.DataDir, err)
	}
	if err := s.launch(ctx); err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL in %s: %w", opts.DataDir, err)
	}
	return s, nil
}

// prepare does all that comes before the server's first start.
func (s *Server) prepare(ctx context.Context) error {
	dir, err := filepath.Abs(s.opts.DataDir)
	if err != nil {
		return err
	}
	if err := refuseForeignDir(dir, s.opts.OwnFiles); err != nil {
		return err
	}
	// Missing directories above dir are made passable, so that the server's user can reach it.
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
	s.layout = layout{dir: dir}
	if s.lock, err = lockDir(dir); err != nil {
		return err
	}
	if s.account, err = chooseAccount(s.layout); err != nil {
		return err
	}
	if err = s.account.grantPath(dir, s.opts.OwnFiles); err != nil {
		return err
	}
	major, err := s.layout.major()
	if err != nil {
		return err
	}
	if s.programs, err = FindPrograms(ctx, s.opts.BinDir, major, s.log); err != nil {
		return err
	}
	if err = s.account.checkPrograms(s.programs); err != nil {
		return err
	}
	if err = clearOrphans(ctx, s.layout, s.log); err != nil {
		return err
	}
	s.layout.removeTempSocketDir()
	s.clearPartials()
	if major == 0 {
		if err = s.initialize(ctx); err != nil {
			return err
		}
		s.fresh = true
	}
	if s.layout.socketDir, err = s.account.makeSocketDir(s.layout); err != nil {
		return err
	}
	return s.writeConfig(ctx)
}

// launch starts supervision and waits for the server's first readiness.
func (s *Server) launch(ctx context.Context) error {
	superCtx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	ready := make(chan error, 1)
	go s.supervise(superCtx, ctx, ready)
	if err := <-ready; err != nil { // supervise always sends one answer, within ctx
		cancel()
		<-s.done
		return withRemedy(err)
	}
	if err := s.furnish(ctx); err != nil {
		stopCtx, stop := context.WithTimeout(context.Background(), defaultStopTimeout)
		defer stop()
		return errors.Join(err, s.Stop(stopCtx))
	}
	s.log.Info("embedded PostgreSQL is ready", "version", s.programs.Version,
		"data_dir", s.layout.dir, "pid", s.PID(), "user", s.account.String())
	return nil
}

// furnish makes what a running server lacks: quotad's role and database, and in a new cluster
// the first files of WAL.
func (s *Server) furnish(ctx context.Context) error {
	conn, err := postgres.Connect(ctx, s.AdminURL(), nil)
	if err != nil {
		return err
	}
	defer postgres.CloseConn(conn)
	if err := createDatabase(ctx, conn); err != nil || !s.fresh {
		return err
	}
	return makeWALFiles(ctx, conn, s.layout.dir)
}

const (
	// createRole is one string and so one transaction: there is no role without its grant.
	createRole   = "CREATE ROLE quotad LOGIN; GRANT pg_monitor TO quotad"
	createQuotad = "CREATE DATABASE quotad OWNER quotad"
)

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
		statements = append(statements, createRole)
	}
	if !database {
		statements = append(statements, createQuotad)
	}
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// URL is quotad's own database over the private socket. It stays the same for
// the life of s, through restarts of the server.
func (s *Server) URL() string { return s.layout.url(appName, appName) }

// AdminURL is the maintenance database as the cluster's superuser.
func (s *Server) AdminURL() string { return s.layout.url(superuser, "postgres") }

// PID is the process of the running postmaster, 0 while there is none.
func (s *Server) PID() int { return int(s.pid.Load()) }

// Done is closed when the server has ended for good: after Stop, or when it kept dying and was
// given up. Err says which.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is nil before Done and after an orderly Stop, else why the server was
// given up.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop shuts the server down fast: open transactions are rolled back, and all data is flushed.
// When ctx ends it stops the server at once, which leaves recovery to the next start. Without
// a deadline in ctx the deadline is a minute. When Stop returns, nothing of s runs any more.
// It may be called again.
func (s *Server) Stop(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultStopTimeout)
		defer cancel()
	}
	s.stopOnce.Do(func() {
		s.stopBy.Store(&ctx)
		s.cancel()
	})
	<-s.done // supervise bounds every step of a stop
	return s.err
}

// release releases the data directory: the lock, and a socket directory elsewhere.
func (s *Server) release() {
	if s.lock != nil {
		s.layout.removeTempSocketDir()
		s.lock.release()
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
