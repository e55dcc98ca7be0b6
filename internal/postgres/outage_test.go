package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
)

func TestOutageAndRetryable(t *testing.T) {
	code := func(code string) error { return &pgconn.PgError{Code: code} }
	for _, c := range []struct {
		err               error
		outage, retryable bool
	}{
		{err: nil},
		{err: errors.New("other")},
		{err: pgx.ErrNoRows},
		{err: context.Canceled},
		{err: errors.Join(context.Canceled, io.EOF)},
		{err: code("23505")}, // unique
		{err: code("28P01")}, // wrong password
		{err: code("3D000")}, // no such database
		{err: code("42501")}, // not allowed
		{err: code("42P01")}, // no such table
		{err: code("XX000")},
		{err: context.DeadlineExceeded, outage: true},
		{err: io.EOF, outage: true},
		{err: io.ErrUnexpectedEOF, outage: true},
		{err: &net.OpError{Op: "dial", Err: errors.New("refused")}, outage: true},
		{err: new(pgconn.ConnectError), outage: true},
		{err: puddle.ErrClosedPool, outage: true},
		{err: driver.ErrBadConn, outage: true},
		{err: code("08006"), outage: true},
		{err: code("25006"), outage: true},
		{err: code("25P03"), outage: true},
		{err: code("53100"), outage: true},
		{err: code("53300"), outage: true},
		{err: code("57P01"), outage: true},
		{err: code("57P03"), outage: true},
		{err: code("57P05"), outage: true},
		{err: code("58030"), outage: true},
		{err: code("40001"), retryable: true},
		{err: code("40P01"), retryable: true},
		{err: code("55P03"), retryable: true},
		{err: code("57014"), retryable: true},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("wrapped: %w", err)
		}
		if outage, retryable := postgres.Outage(err), postgres.Retryable(err); outage != c.outage || retryable != c.retryable {
			t.Errorf("%v: outage %v, retryable %v", err, outage, retryable)
		}
	}
}

// What real failures look like, each as it comes back from a connection.
func TestOutageOfAServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, pgtest.WithoutMigrations())
	ctx := pgtest.Context(t)
	conn, err := postgres.Connect(ctx, server.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	try := func(statement string) error {
		_, err := conn.Exec(ctx, statement)
		return err
	}
	if err := try("SET statement_timeout = 20; SELECT pg_sleep(5)"); !postgres.Retryable(err) || postgres.Outage(err) {
		t.Errorf("a statement that took too long: %v", err)
	}
	if err := try("SELECT missing"); postgres.Retryable(err) || postgres.Outage(err) {
		t.Errorf("a wrong statement: %v", err)
	}
	server.Stop()
	if err := try("SELECT 1"); postgres.Retryable(err) || !postgres.Outage(err) {
		t.Errorf("a stopped server: %v", err)
	}
	if err := try("SELECT 1"); postgres.Retryable(err) || !postgres.Outage(err) {
		t.Errorf("on a connection that is closed: %v", err)
	}
	if _, err := postgres.Connect(ctx, server.URL(), nil); postgres.Retryable(err) || !postgres.Outage(err) {
		t.Errorf("nobody there: %v", err)
	}
}
