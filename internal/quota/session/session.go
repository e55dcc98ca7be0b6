package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
)

// Options are the settings of sessions. quota.Options describes each field.
type Options struct {
	Connect   func(context.Context) (*pgx.Conn, error)
	Confirm   func(context.Context, *pgx.Conn) error
	Now       func(context.Context) (int64, error) // µs
	Wall      func() time.Time
	Stopwatch func() time.Duration
	Log       *slog.Logger
	Patience  time.Duration

	Troubles *Troubles // the troubles of all sessions
	Circuit  *Circuit  // nil: the database may respond slowly
}

// atLeast returns a bound for a wait for the database, which is at least Patience.
func (o *Options) atLeast(bound time.Duration) time.Duration { return max(bound, o.Patience) }

// pingLimit returns the maximum duration of a check whether a session is alive. If hits wait for a limited time,
// the result leaves a hit time for another session.
func (o *Options) pingLimit() time.Duration {
	limit := o.atLeast(pingLimit)
	if o.Circuit != nil {
		limit = min(limit, o.Circuit.within/2)
	}
	return limit
}

// Session manages the connection of a lane or a worker. It connects in the background, so that an unresponsive
// database does not block callers. Only the goroutine of the lane or worker uses a Session, except for trouble,
// which every goroutine may read.
type Session struct {
	Options    *Options
	Statements map[StatementName]string
	trouble    atomic.Pointer[error] // the reason, wrapped by Unreached, why hits cannot be charged now; nil: they can
	made       atomic.Int64          // the number of sessions since the start
	Beside     *Session              // the session of the lane's worker; nil: this session belongs to a worker
	Faults     Faults

	Conn      *Conn
	busySince atomic.Int64 // the start of the running batch on the stopwatch, at least 1; 0: no batch is running
	wire      atomic.Pointer[net.Conn]
	asked     int64         // the circuit's closings when the connection was last checked
	usedAt    time.Duration // the time of the last use, on the stopwatch
	refusedAt time.Duration // the time of the last rejected statement, on the stopwatch
	making    chan *Conn    // sends the new connection once while it is being made; else nil
	tried     chan struct{} // reports a failed attempt
	cancel    func()        // cancels the attempts
}

// The bounds of a session. Options.Patience extends the bounds of waits for the database.
const (
	connectLimit = 3 * time.Second        // for the creation of a session, from the first byte to the last statement
	pingLimit    = time.Second            // for the check whether an idle session is alive
	idleLimit    = time.Second            // a session that was unused for longer is checked first
	patience     = 250 * time.Millisecond // the time for which hits wait for a session that is being made
	minRetryWait = 100 * time.Millisecond // the minimum pause between two attempts to make a session
	maxRetryWait = time.Second
)

var errConnecting = fmt.Errorf("%w: a new connection to the database is being made", context.DeadlineExceeded)

// Begin ensures that a connection and a clock are available, and returns the clock's time, µs. Errors:
// ErrUnavailable and ErrNoSession. Call End afterwards, whether Begin succeeded or not.
func (s *Session) Begin(ctx context.Context) (now int64, err error) {
	if err = s.Options.Circuit.Err(); err != nil {
		return 0, err
	}
	if err = s.Ready(ctx); err != nil {
		return 0, err
	}
	if now, err = s.Options.Now(ctx); err != nil {
		return 0, s.failed(err)
	}
	// A connection and a clock do not prove that a rejected statement works again, so a rejection counts as a
	// trouble for a while.
	if s.refusedAt == 0 || s.Options.Stopwatch()-s.refusedAt > troubleLasts {
		s.refusedAt = 0
		s.works()
	}
	return now, nil
}

// Made returns the number of sessions since the start. Each session has made round trips.
func (s *Session) Made() int64 { return s.made.Load() }

// Ready ensures that there is a connection, or returns the reason why there is none. If the connection was idle,
// Ready pings the server first. If that connection is dead, no hit was sent on it, and no outcome is lost.
func (s *Session) Ready(ctx context.Context) error {
	now := s.Options.Stopwatch()
	idle := now - s.usedAt
	s.usedAt = now
	s.busySince.Store(max(1, int64(now)))
	if s.making != nil {
		s.await(ctx)
	}
	closings := s.Options.Circuit.closings()
	if s.asked != closings { // the connection may have died without notice
		s.asked, idle = closings, idleLimit
	}
	if s.Conn != nil && idle >= idleLimit && !s.Conn.alive(ctx, s.Options.pingLimit()) || s.Conn != nil && s.Conn.conn.IsClosed() {
		s.Drop()
	}
	if s.Conn == nil && s.making == nil {
		s.make(ctx)
		s.await(ctx)
	}
	if s.Conn != nil {
		return nil
	}
	why := s.trouble.Load()
	if why == nil {
		slow := Unreached(errConnecting)
		why = &slow
		s.trouble.Store(why)
	}
	return *why
}

// await takes over the connection that is being made. It waits for at most patience, and not at all if a problem
// is known.
func (s *Session) await(ctx context.Context) {
	wait := s.Options.atLeast(patience)
	if why := s.trouble.Load(); why != nil && !errors.Is(*why, errConnecting) {
		wait = 0
	}
	patient := time.NewTimer(wait)
	defer patient.Stop()
	for s.Conn == nil {
		select {
		case s.Conn = <-s.making:
		case <-s.tried:
			if s.trouble.Load() != nil { // otherwise an attempt has succeeded since
				return
			}
		case <-patient.C:
			return
		case <-ctx.Done():
			return
		}
	}
	s.making = nil
	s.cancel()
	s.Conn.follow(ctx)
	wire := s.Conn.conn.PgConn().Conn()
	s.wire.Store(&wire)
	s.Conn.faults = s.Faults
}

// make starts a goroutine that tries to connect until it has a connection or the session is closed. Therefore the
// session notices the end of a trouble even if no hit arrives.
func (s *Session) make(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	suspect := s.refusedAt != 0
	making, tried := make(chan *Conn, 1), make(chan struct{}, 1)
	s.making, s.tried = making, tried
	go func() {
		defer close(making)
		pauses := &backoff.ExponentialBackOff{InitialInterval: minRetryWait, Multiplier: 2, MaxInterval: maxRetryWait}
		told := func(err error, _ time.Duration) {
			_ = s.failed(err)
			select {
			case tried <- struct{}{}:
			default:
			}
		}
		// By default, Retry would give up after a quarter of an hour.
		try := func() (*Conn, error) {
			attempts, end := s.Options.Circuit.attempts(ctx)
			defer end()
			return backoff.Retry(attempts, func() (*Conn, error) { return s.attempt(attempts, suspect) },
				backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0), backoff.WithNotify(told))
		}
		conn, err := try()
		for errors.Is(err, context.Canceled) && ctx.Err() == nil { // the circuit has been closed
			pauses.Reset()
			conn, err = try()
		}
		if err == nil {
			s.works()
			s.made.Add(1)
			making <- conn
		}
	}()
}

// attempt creates a session within connectLimit. The session charges nothing before the database has the history
// that the node knows. After a statement was rejected, attempt checks whether the statements are allowed again,
// because otherwise the first batch of each session would fail.
func (s *Session) attempt(ctx context.Context, suspect bool) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Options.atLeast(connectLimit))
	defer cancel()
	conn, err := open(ctx, s.Options, s.Statements)
	if err == nil && s.Options.Confirm != nil {
		// A new connection may lead to a server that lacks the last changes, or to a restored server.
		if err = s.Options.Confirm(ctx, conn.conn); err != nil {
			conn.close()
		}
	}
	if err == nil && suspect {
		if err = conn.allowed(ctx); err != nil {
			conn.close()
		}
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// allowed checks whether the database accepts writes, and with EXPLAIN whether the role may run all statements.
// Preparing a statement requires no privilege, but explaining it requires the privilege to run it.
func (s *Conn) allowed(ctx context.Context) error {
	if err := postgres.CheckWrites(ctx, s.conn); err != nil {
		return err
	}
	var all strings.Builder
	for name, statement := range s.statements {
		all.WriteString("EXPLAIN EXECUTE " + string(name))
		if n := len(statement.ParamOIDs); n > 0 {
			all.WriteString("(NULL" + strings.Repeat(", NULL", n-1) + ")")
		}
		all.WriteString(";")
	}
	_, err := s.conn.PgConn().Exec(ctx, all.String()).ReadAll()
	return err
}

// Refuse drops the connection after the server rejected a correct statement. It returns the error for callers.
func (s *Session) Refuse(err error) error {
	s.refusedAt = s.Options.Stopwatch()
	s.Drop()
	return s.failed(err)
}

// failed records the reason why hits cannot be charged, and returns the error for callers.
func (s *Session) failed(err error) error {
	err = Unreached(err)
	s.trouble.Store(&err)
	s.Options.Troubles.Report(err, s.Options.Stopwatch())
	return err
}

// works records that hits can be charged again.
func (s *Session) works() {
	if s.trouble.Load() != nil {
		s.trouble.Store(nil)
	}
	s.Options.Troubles.expire(s.Options.Stopwatch())
}

// Why returns the error to report to a caller that stopped waiting before its hit was sent.
func (s *Session) Why() error {
	switch trouble := s.trouble.Load(); {
	case s.late():
		return ErrSlow
	case trouble == nil && s.Beside != nil:
		return s.Beside.Why()
	case trouble == nil:
		return ErrBusy
	case errors.Is(*trouble, ErrUnavailable):
		return ErrUnavailable
	case errors.Is(*trouble, ErrReadOnly):
		return ErrReadOnly
	default:
		return ErrNoSession
	}
}

// Drop closes the connection of the session.
func (s *Session) Drop() {
	if s.Conn != nil {
		s.wire.Store(nil)
		s.Conn.close()
		s.Conn = nil
	}
}

// End records that no batch is running on the session.
func (s *Session) End() { s.busySince.Store(0) }

// Suspect reports an error of a statement of the running batch to the circuit.
func (s *Session) Suspect(err error) { s.Options.Circuit.suspect(err, s.began()) }

// began returns the start of the running batch on the stopwatch, or 0 if no batch is running.
func (s *Session) began() time.Duration { return time.Duration(s.busySince.Load()) }

// busyFor returns the time for which a batch has been running, or 0 if no batch is running.
func (s *Session) busyFor(now time.Duration) time.Duration {
	since := s.began()
	if since == 0 {
		return 0
	}
	return max(1, now-since)
}

// late reports whether hits wait for a database that is too slow or for a late batch. A batch is late if it has
// been running for more than half of the time for which hits may wait.
func (s *Session) late() bool {
	c := s.Options.Circuit
	return c != nil && (c.isOpen.Load() || s.busyFor(s.Options.Stopwatch()) > c.within/2)
}

// cut cuts the session's connection, so the response to a running batch is lost. Any goroutine may call cut.
func (s *Session) cut() {
	if wire := s.wire.Load(); wire != nil {
		_ = (*wire).SetDeadline(time.Unix(1, 0))
	}
}

// Close ends the session, even if its connection is still being made.
func (s *Session) Close() {
	s.Drop()
	if s.making != nil {
		s.cancel()
		if conn := <-s.making; conn != nil {
			conn.close()
		}
		s.making = nil
	}
}

// Hopeless reports whether an error of a statement means that every statement would fail.
func Hopeless(err error) bool { return postgres.Outage(err) || postgres.Refused(err) }
