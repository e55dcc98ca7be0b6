package session

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// testSession is a session with a statement "one", closed with the test.
func testSession(t *testing.T) *Session {
	t.Helper()
	url, start := pgtest.NewDatabase(t), time.Now()
	s := &Session{
		Options: &Options{
			Connect:   func(ctx context.Context) (*pgx.Conn, error) { return postgres.Connect(ctx, url, SessionSettings) },
			Now:       func(context.Context) (int64, error) { return 1, nil },
			Wall:      time.Now,
			Stopwatch: func() time.Duration { return time.Since(start) },
			Troubles:  NewTroubles(slog.New(slog.DiscardHandler)),
			Patience:  testkit.Patience,
		},
		Statements: map[StatementName]string{"one": "SELECT 1"},
	}
	t.Cleanup(s.Close)
	for ctx := testkit.Context(t); s.Ready(ctx) != nil; { // it is being made
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	return s
}

func oneRow(r *pgconn.ResultReader) error {
	if !r.NextRow() {
		return errors.New("no row")
	}
	return nil
}

// The deadline of a session's last batch ends nothing that comes later.
func TestOldDeadline(t *testing.T) {
	batch := func(ctx context.Context, c *Conn) error { return c.Run(ctx, []Step{{Name: "one", Read: oneRow}}) }
	for name, do := range map[string]func(context.Context, *Conn) error{
		"a batch": batch,
		"a transaction of several round trips": func(ctx context.Context, c *Conn) error {
			pipe := c.Begin(ctx)
			return errors.Join(pipe.Answers(), pipe.Commit())
		},
		"a ping": func(ctx context.Context, c *Conn) error {
			if !c.alive(ctx, testkit.Patience) {
				return errors.New("it is not alive")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := testSession(t), testkit.Context(t)
			c := s.Conn
			if err := batch(ctx, c); err != nil {
				t.Fatal(err)
			}
			if c.until.IsZero() {
				t.Fatal("the batch had no deadline")
			}
			c.until = time.Now().Add(-time.Hour)
			if err := c.conn.PgConn().Conn().SetDeadline(c.until); err != nil {
				t.Fatal(err)
			}
			if err := do(ctx, c); err != nil {
				t.Error(err)
			}
			if err := s.Ready(ctx); err != nil || s.Conn != c {
				t.Error("the session was given up:", err)
			}
		})
	}
}

// The word of an attempt that failed long ago, before one that worked, is no outage: the
// session is a moment away.
func TestAnOldFailureIsNoOutage(t *testing.T) {
	s, ctx := testSession(t), testkit.Context(t)
	ready := s.Conn
	making, tried := make(chan *Conn, 1), make(chan struct{}, 1)
	s.Conn, s.making, s.tried, s.cancel = nil, making, tried, func() {}
	tried <- struct{}{}
	go func() {
		for len(tried) > 0 { // until the session has heard of it
			time.Sleep(time.Millisecond)
		}
		making <- ready
	}()
	if err := s.Ready(ctx); err != nil {
		t.Error(err)
	}
}
