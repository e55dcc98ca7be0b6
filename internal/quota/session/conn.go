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

// StatementName is the name of a prepared statement of a session.
type StatementName string

// Step is one statement of a batch's pipeline.
type Step struct {
	Name   StatementName
	Params [][]byte
	Read   func(*pgconn.ResultReader) error // reads its rows
}

// Conn is one connection with its prepared statements. It runs one batch at a time.
type Conn struct {
	conn       *pgx.Conn
	statements map[StatementName]*pgconn.StatementDescription
	room       room
	options    *Options
	until      time.Time   // the deadline of Run's reads and writes; zero: the connection has no deadline
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

// wait raises the server's limit for statements according to Options.Patience, but keeps it below SendLimit.
func (s *Conn) wait(ctx context.Context) error {
	if s.options.Patience <= SendLimit {
		return nil
	}
	ms := (s.options.Patience * 3 / 4).Milliseconds()
	_, err := s.conn.PgConn().Exec(ctx, "SET statement_timeout = "+strconv.FormatInt(ms, 10)).ReadAll()
	return err
}

// prepare prepares all statements in one round trip. With a distant database, one round trip for each statement
// would take longer than hits wait for a session.
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

// renewAfter is the age at which the deadline of a connection is renewed. A context for each batch would cost as
// much as writing the batch's parameters.
//
// renewAfter, SendLimit and patience together are shorter than the wait of a request. Therefore a hit that queues
// behind a lost batch still learns that the database is out of reach.
const renewAfter = 500 * time.Millisecond

// limit sets a deadline of at least SendLimit, and at most renewAfter more, for the data that is sent now.
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

// unlimited removes Run's deadline from the connection, for calls whose context has a deadline. A closed
// connection keeps its deadline, which then bounds the closing.
func (s *Conn) unlimited() {
	if !s.until.IsZero() && !s.conn.IsClosed() {
		s.until = time.Time{}
		_ = s.conn.PgConn().Conn().SetDeadline(s.until) // an error here also occurs at the next use
	}
}

// follow cuts the connection when ctx ends, so that the running batch and all later batches fail.
func (s *Conn) follow(ctx context.Context) {
	conn := s.conn.PgConn().Conn()
	s.unfollow = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// alive pings the server.
func (s *Conn) alive(ctx context.Context, within time.Duration) bool {
	s.unlimited()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.conn.Ping(ctx) == nil
}

// close ends the session. A second is sufficient to terminate the connection properly.
func (s *Conn) close() {
	if s.unfollow != nil {
		s.unfollow()
	}
	s.unlimited()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// binaryFormat requests the binary format for every column and parameter.
var binaryFormat = []int16{1}

// SendLimit is the maximum duration of a transaction of a worker, from the first byte to the commit. It also
// bounds a round trip of a lane, which may take up to renewAfter longer.
//
// SendLimit exceeds the session's statement_timeout, so the server rolls a slow statement back and reports the
// rollback. If the client cut the connection instead, the outcome would be unknown.
const SendLimit = 4 * time.Second

// SendLimit returns the constant, or Patience if that is longer.
func (o *Options) SendLimit() time.Duration { return max(SendLimit, o.Patience) }

var errNotSent = errors.New("not sent")

// NotSent reports whether an error of Run means that nothing of the batch reached the server.
func NotSent(err error) bool { return errors.Is(err, errNotSent) }

// Run sends the steps in one round trip and one transaction. It sends no COMMIT, because the server commits at the
// pipeline's Sync. If Run returns nil, the transaction is committed.
//
// There are three kinds of errors. NotSent means that nothing reached the server. postgres.NotCommitted means that
// nothing was charged. After any other error, the outcome is unknown.
func (s *Conn) Run(ctx context.Context, steps []Step) error {
	if s.conn.IsClosed() {
		return errNotSent
	}
	// limit must be called before ctx.Err. If ctx ends before limit, ctx.Err reports it. If ctx ends after limit,
	// follow's deadline is newer and stays in place.
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

// RolledBack reports whether the server rejected a statement with an ERROR. If so, the transaction has ended, and
// the session can be used again. postgres.NotCommitted reports the outcome of a commit.
func RolledBack(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR"
}
