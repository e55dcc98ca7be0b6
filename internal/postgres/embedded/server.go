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
	// appName is the name of quotad's role and database in its embedded server.
	appName = "quotad"
	// superuser is the role that owns the embedded cluster. quotad itself works without superuser rights, which
	// it also lacks on an external server.
	superuser = "postgres"

	defaultStartTimeout = 10 * time.Minute // recovery after a crash may read gigabytes of WAL
	defaultStopTimeout  = time.Minute
	defaultGiveUpAfter  = 2 * time.Minute
)

// Options are the options of Start. Only DataDir is required.
type Options struct {
	DataDir string       // created if missing; usually DefaultDataDir()
	BinDir  string       // directory of initdb and postgres; if empty, see FindPrograms
	Logger  *slog.Logger // nil means slog.Default()
	// OwnFiles are the names of files that the caller stores in DataDir, readable only by the caller's user.
	OwnFiles []string

	// Settings override quotad's own settings of the server, by name. The settings that keep the server private
	// cannot be overridden.
	Settings map[string]string
	// StartTimeout is the maximum duration of the first start, including initdb and crash recovery; 0 means ten
	// minutes.
	StartTimeout time.Duration
	// GiveUpAfter is the time for which a server that keeps crashing is restarted before Done is closed; 0 means
	// two minutes.
	GiveUpAfter time.Duration
	// NoSync skips flushing the files that initdb wrote. It is for tests only.
	NoSync bool
}

// Server is a private PostgreSQL server that runs until Stop. Its methods may be called from any goroutine.
type Server struct {
	opts     Options
	log      *slog.Logger
	programs Programs
	account  *account // the user who runs the server; nil means quotad's own user
	layout   layout
	lock     *dirLock
	fresh    bool // this start has created the cluster

	pid    atomic.Int64  // of the running postmaster, or 0
	done   chan struct{} // closed when supervision has ended
	err    error         // the reason why supervision ended; set before done is closed
	cancel context.CancelFunc

	stopOnce sync.Once
	stopBy   atomic.Pointer[context.Context] // the deadline of Stop
}

// Start starts the server of opts.DataDir, and creates its data on the first start. It returns when the server
// accepts connections. ctx bounds only the start; the server runs until Stop and is restarted if it crashes.
//
// Errors for callers to handle: ErrDataDirInUse, ErrNoPrograms, ErrUnreachableDataDir.
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

// prepare does everything that is necessary before the server's first start.
func (s *Server) prepare(ctx context.Context) error {
	dir, err := filepath.Abs(s.opts.DataDir)
	if err != nil {
		return err
	}
	if err := refuseForeignDir(dir, s.opts.OwnFiles); err != nil {
		return err
	}
	// Missing directories above dir are created with search permission for all, so that the server's user can
	// reach dir.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // accessible on purpose
		return chooseAnother("make the data directory", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return chooseAnother("make the data directory", err)
	}
	// Symbolic links are resolved once, so that every later check and every process uses the same path.
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

// launch starts supervision and waits until the server is ready for the first time.
func (s *Server) launch(ctx context.Context) error {
	superCtx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	ready := make(chan error, 1)
	go s.supervise(superCtx, ctx, ready)
	if err := <-ready; err != nil { // supervise always sends one value, within ctx
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

// furnish creates quotad's role and database and, in a new cluster, the first WAL files.
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
	// createRole is a single string and therefore a single transaction, so the role never exists without its
	// grant.
	createRole   = "CREATE ROLE quotad LOGIN; GRANT pg_monitor TO quotad"
	createQuotad = "CREATE DATABASE quotad OWNER quotad"
)

// createDatabase creates quotad's role and database if they are missing.
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

// URL returns the URL of quotad's own database over the private socket. It stays the same through restarts of
// the server.
func (s *Server) URL() string { return s.layout.url(appName, appName) }

// AdminURL returns the URL of the maintenance database for the cluster's superuser.
func (s *Server) AdminURL() string { return s.layout.url(superuser, "postgres") }

// PID returns the process id of the running postmaster, or 0 if no postmaster runs.
func (s *Server) PID() int { return int(s.pid.Load()) }

// Done returns a channel that is closed when the server has ended permanently: after Stop, or after it kept
// crashing and was given up. Err returns the reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns nil before Done is closed and after an orderly Stop, and otherwise the reason why the server was
// given up.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop shuts the server down fast: it rolls back open transactions and flushes all data. If ctx ends, Stop
// requests an immediate shutdown, after which the next start must recover. If ctx has no deadline, the deadline
// is a minute. When Stop returns, nothing of s runs any more. Stop may be called again.
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
	<-s.done // supervise limits every step of a stop
	return s.err
}

// release releases the lock of the data directory and removes a socket directory outside of it.
func (s *Server) release() {
	if s.lock != nil {
		s.layout.removeTempSocketDir()
		s.lock.release()
	}
}

// url returns a connection URL over the socket.
func (l layout) url(user, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(user),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {l.socketDir}, "port": {socketPort}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}
