package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// StatementName is a prepared statement of a session.
type StatementName string

// Step is one statement of a batch's pipeline.
type Step struct {
	Name   StatementName
	Params [][]byte
	Read   func(*pgconn.ResultReader) error // reads its rows
}

// Conn is one session with its prepared statements: one batch at a time.
type Conn struct {
	conn       *pgx.Conn
	statements map[StatementName]*pgconn.StatementDescription
	room       room
	options    *Options
	until      time.Time   // when Run's reads and writes end; zero: the connection has no deadline
	unfollow   func() bool // undoes follow

	faults Faults
}

func open(ctx context.Context, o *Options, texts map[StatementName]string) (*Conn, error) {
	conn, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &Conn{conn: conn, options: o, statements: make(map[StatementName]*pgconn.StatementDescription, len(texts))}
	err = s.wait(ctx)
	if err == nil {
		err = s.prepare(ctx, texts)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// wait has the server give a statement longer with Options.Patience, and still less than SendLimit.
func (s *Conn) wait(ctx context.Context) error {
	if s.options.Patience <= SendLimit {
		return nil
	}
	ms := (s.options.Patience * 3 / 4).Milliseconds()
	_, err := s.conn.PgConn().Exec(ctx, "SET statement_timeout = "+strconv.FormatInt(ms, 10)).ReadAll()
	return err
}

// prepare makes all statements in one round trip: to a distant database one for each would
// take longer than hits wait for a session.
func (s *Conn) prepare(ctx context.Context, texts map[StatementName]string) error {
	names := slices.Sorted(maps.Keys(texts))
	pipeline := s.conn.PgConn().StartPipeline(ctx)
	for _, name := range names {
		pipeline.SendPrepare(string(name), texts[name], nil)
	}
	err := pipeline.Sync()
	for i := 0; err == nil && i < len(names); i++ {
		var made any
		if made, err = pipeline.GetResults(); err != nil {
			err = fmt.Errorf("prepare %s: %w", names[i], err)
		} else if statement, ok := made.(*pgconn.StatementDescription); ok {
			statement.Name = string(names[i])
			s.statements[names[i]] = statement
		}
	}
	return errors.Join(err, pipeline.Close())
}

// renewAfter is how old the deadline of a connection gets before it is set again. A context
// for each batch would cost as much as writing the batch's parameters.
//
// renewAfter, SendLimit and patience together are less than a request waits. So a hit that
// queues behind a lost batch still hears that the database is away.
const renewAfter = 500 * time.Millisecond

// limit gives what is sent now at least SendLimit, and at most renewAfter more.
func (s *Conn) limit() error {
	now, most := s.options.Wall(), s.options.SendLimit()
	if s.until.Sub(now) >= most {
		return nil
	}
	until := now.Add(most + renewAfter)
	err := s.conn.PgConn().Conn().SetDeadline(until)
	if err == nil {
		s.until = until
	}
	return err
}

// unlimited takes Run's deadline off the connection, for calls whose context has a deadline. A
// closed connection keeps its deadline, which is for the closing.
func (s *Conn) unlimited() {
	if !s.until.IsZero() && !s.conn.IsClosed() {
		s.until = time.Time{}
		_ = s.conn.PgConn().Conn().SetDeadline(s.until) // what fails here, fails at the next use
	}
}

// follow cuts the connection off when ctx ends: the batch that runs fails, and each later one.
func (s *Conn) follow(ctx context.Context) {
	conn := s.conn.PgConn().Conn()
	s.unfollow = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// alive asks the server.
func (s *Conn) alive(ctx context.Context, within time.Duration) bool {
	s.unlimited()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.conn.Ping(ctx) == nil
}

// close ends the session; a second is enough to say goodbye.
func (s *Conn) close() {
	if s.unfollow != nil {
		s.unfollow()
	}
	s.unlimited()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// binaryFormat asks for binary in every column and parameter.
var binaryFormat = []int16{1}

// SendLimit bounds a transaction of a worker, from the first byte to the commit. It also bounds a
// round trip of a lane, which may take up to renewAfter longer.
//
// SendLimit is longer than the session's statement_timeout. So the server rolls a slow statement
// back and says so. A cut here would leave the outcome unknown.
const SendLimit = 4 * time.Second

// SendLimit is the constant, or Patience where that is longer.
func (o *Options) SendLimit() time.Duration { return max(SendLimit, o.Patience) }

var errNotSent = errors.New("not sent")

// NotSent reports whether an error of Run says that nothing of the batch reached the server.
func NotSent(err error) bool { return errors.Is(err, errNotSent) }

// Run sends the steps in one round trip and one transaction. No COMMIT is sent: the server
// commits at the pipeline's Sync. When Run returns nil, the transaction is committed.
//
// An error is one of three. NotSent: nothing reached the server. postgres.NotCommitted: nothing
// was charged. Any other: nobody can know.
func (s *Conn) Run(ctx context.Context, steps []Step) error {
	if s.conn.IsClosed() {
		return errNotSent
	}
	// limit comes first. If ctx ends before limit, ctx.Err says so; if ctx ends after limit,
	// follow's deadline is the newer one and stays.
	err := s.limit()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return errors.Join(errNotSent, err)
	}
	pipeline := s.conn.PgConn().StartPipeline(context.Background())
	for _, st := range steps {
		s.makeRoom(st.Params)
		pipeline.SendQueryStatement(s.statements[st.Name], st.Params, binaryFormat, binaryFormat)
	}
	err = pipeline.Sync()
	for next := 0; err == nil; {
		var results any
		if results, err = pipeline.GetResults(); err != nil || results == nil {
			break
		}
		reader, ok := results.(*pgconn.ResultReader)
		if !ok {
			continue // the end of a transaction
		}
		bad := steps[next].Read(reader)
		if _, err = reader.Close(); err == nil {
			err = bad
		}
		next++
	}
	return errors.Join(err, pipeline.Close())
}

// RolledBack reports whether the server refused a statement with an ERROR. The transaction is
// over then, and the session can be used again. What became of a commit postgres.NotCommitted
// says.
func RolledBack(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR"
}
