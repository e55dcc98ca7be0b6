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

// Options are what sessions are made with. quota.Options says what each field is.
type Options struct {
	Connect   func(context.Context) (*pgx.Conn, error)
	Confirm   func(context.Context, *pgx.Conn) error
	Now       func(context.Context) (int64, error) // µs
	Wall      func() time.Time
	Stopwatch func() time.Duration
	Log       *slog.Logger
	Patience  time.Duration

	Troubles *Troubles // of all of them
	Circuit  *Circuit  // nil: the database may take its time
}

// atLeast is a bound of a wait for the database.
func (o *Options) atLeast(bound time.Duration) time.Duration { return max(bound, o.Patience) }

// pingLimit is how long a session is asked whether it is alive. Where hits wait within a time, that
// leaves a hit time for another session.
func (o *Options) pingLimit() time.Duration {
	limit := o.atLeast(pingLimit)
	if o.Circuit != nil {
		limit = min(limit, o.Circuit.within/2)
	}
	return limit
}

// Session keeps the connection of a lane or a worker. It makes the connection in the background,
// so that a database that does not even answer keeps no caller waiting. Only the goroutine of
// the lane or worker uses a Session, but for trouble, which all may read.
type Session struct {
	Options    *Options
	Statements map[StatementName]string
	trouble    atomic.Pointer[error] // why hits cannot be charged now, as Unreached says it; nil: they can
	made       atomic.Int64          // sessions, since the start
	Beside     *Session              // of the worker that a lane hands over to; nil: this is a worker's
	Faults     Faults

	Conn      *Conn
	busySince atomic.Int64 // when the batch under way began, on the stopwatch, from 1 on; 0: there is none
	wire      atomic.Pointer[net.Conn]
	asked     int64         // the circuit's closings when it was last asked whether it is alive
	usedAt    time.Duration // when it was last asked for, on the stopwatch
	refusedAt time.Duration // when a statement was last refused, on the stopwatch
	making    chan *Conn    // answers once while one is being made, else nil
	tried     chan struct{} // tells of an attempt that failed
	cancel    func()        // gives the making up
}

// The bounds of a session. Those of a wait for the database are longer with Options.Patience.
const (
	connectLimit = 3 * time.Second        // to make a session, from the first byte to the last statement
	pingLimit    = time.Second            // to ask an idle one whether it is alive
	idleLimit    = time.Second            // unused for longer, a session is asked first
	patience     = 250 * time.Millisecond // how long hits wait for a session that is being made
	minRetryWait = 100 * time.Millisecond // between two attempts to make one
	maxRetryWait = time.Second
)

var errConnecting = fmt.Errorf("%w: a new connection to the database is being made", context.DeadlineExceeded)

// Begin makes sure that there are a connection and a clock, and returns the clock's time, µs.
// Errors: ErrUnavailable and ErrNoSession. End ends what Begin began, whatever came of it.
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
	// A connection and a clock do not show that a refused statement works again. So a refusal
	// counts as a trouble for a while.
	if s.refusedAt == 0 || s.Options.Stopwatch()-s.refusedAt > troubleLasts {
		s.refusedAt = 0
		s.works()
	}
	return now, nil
}

// Made is how many sessions were made since the start. Each has made round trips.
func (s *Session) Made() int64 { return s.made.Load() }

// Ready makes sure that there is a connection, or says why there is none. It asks the server
// first where the connection was idle. If the connection is dead, no hit was sent on it, and no
// outcome is lost.
func (s *Session) Ready(ctx context.Context) error {
	now := s.Options.Stopwatch()
	idle := now - s.usedAt
	s.usedAt = now
	s.busySince.Store(max(1, int64(now)))
	if s.making != nil {
		s.await(ctx)
	}
	closings := s.Options.Circuit.closings()
	if s.asked != closings { // it may have died without a word
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

// await takes over the connection that is being made. It waits for at most patience, and not at
// all where something is known to be wrong.
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
			if s.trouble.Load() != nil { // else an attempt has worked since
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

// make starts a goroutine that tries to connect until it has a connection, or the session is
// closed. So the session learns that a trouble is over even if no hit comes.
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
		// Left to its default, Retry would give up after a quarter of an hour.
		try := func() (*Conn, error) {
			attempts, end := s.Options.Circuit.attempts(ctx)
			defer end()
			return backoff.Retry(attempts, func() (*Conn, error) { return s.attempt(attempts, suspect) },
				backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0), backoff.WithNotify(told))
		}
		conn, err := try()
		for errors.Is(err, context.Canceled) && ctx.Err() == nil { // the circuit was closed
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

// attempt makes a session within connectLimit. The session charges nothing before the database has
// the history that the node knows. After a statement was refused it looks
// whether they may be run again: else each session would be lost to its first batch.
func (s *Session) attempt(ctx context.Context, suspect bool) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Options.atLeast(connectLimit))
	defer cancel()
	conn, err := open(ctx, s.Options, s.Statements)
	if err == nil && s.Options.Confirm != nil {
		// A new connection may be to a server that misses the last changes, or is restored.
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

// allowed finds out whether the database takes writes, and whether the role may run all statements,
// by EXPLAIN. To prepare a statement needs no right; to explain a statement needs the right to run it.
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

// Refuse drops the connection after the server refused a statement that is not itself at fault.
// It returns what callers are told.
func (s *Session) Refuse(err error) error {
	s.refusedAt = s.Options.Stopwatch()
	s.Drop()
	return s.failed(err)
}

// failed notes why hits cannot be charged, and returns what callers are told.
func (s *Session) failed(err error) error {
	err = Unreached(err)
	s.trouble.Store(&err)
	s.Options.Troubles.Report(err, s.Options.Stopwatch())
	return err
}

// works notes that hits can be charged again.
func (s *Session) works() {
	if s.trouble.Load() != nil {
		s.trouble.Store(nil)
	}
	s.Options.Troubles.expire(s.Options.Stopwatch())
}

// Why is what callers are told who gave up before their hit was sent.
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

// Drop gives up the session.
func (s *Session) Drop() {
	if s.Conn != nil {
		s.wire.Store(nil)
		s.Conn.close()
		s.Conn = nil
	}
}

// End says that nothing is under way on the session.
func (s *Session) End() { s.busySince.Store(0) }

// Suspect tells the circuit of an error that a statement of the batch under way has met.
func (s *Session) Suspect(err error) { s.Options.Circuit.suspect(err, s.began()) }

// began returns when the batch under way began, on the stopwatch, or 0 if there is none.
func (s *Session) began() time.Duration { return time.Duration(s.busySince.Load()) }

// busyFor is how long a batch has been under way; 0: there is none.
func (s *Session) busyFor(now time.Duration) time.Duration {
	since := s.began()
	if since == 0 {
		return 0
	}
	return max(1, now-since)
}

// late reports whether hits wait for a database that is too slow, or for a batch that has been under way
// for most of the time that they may wait.
func (s *Session) late() bool {
	c := s.Options.Circuit
	return c != nil && (c.isOpen.Load() || s.busyFor(s.Options.Stopwatch()) > c.within/2)
}

// cut ends what is under way on the session: its answer is lost. Any goroutine may call it.
func (s *Session) cut() {
	if wire := s.wire.Load(); wire != nil {
		_ = (*wire).SetDeadline(time.Unix(1, 0))
	}
}

// Close ends it, one that is still being made too.
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

// Hopeless reports whether an error of a statement says that none would be served.
func Hopeless(err error) bool { return postgres.Outage(err) || postgres.Refused(err) }
