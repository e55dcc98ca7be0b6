package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestOutageRefusedAndRetryable(t *testing.T) {
	code := func(code string) error { return &pgconn.PgError{Code: code} }
	const outage, refused, retryable, other = "outage", "refused", "retryable", ""
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, other},
		{errors.New("other"), other},
		{pgx.ErrNoRows, other},
		{context.Canceled, other},
		{errors.Join(context.Canceled, io.EOF), other},
		{code("23505"), other}, // unique
		{code("XX000"), other},
		{context.DeadlineExceeded, outage},
		{io.EOF, outage},
		{io.ErrUnexpectedEOF, outage},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, outage},
		{pgconn.ErrReadOnlyConnection, refused},
		{postgres.ErrReadOnly, refused},
		// The host that is out of reach may be the primary.
		{errors.Join(pgconn.ErrReadOnlyConnection, &net.OpError{Op: "dial", Err: errors.New("refused")}), outage},
		{puddle.ErrClosedPool, outage},
		{driver.ErrBadConn, outage},
		{code("08006"), outage},
		{code("25006"), refused}, // read only
		{code("25P03"), outage},
		{code("57P01"), outage},
		{code("57P02"), outage},
		{code("57P03"), outage},
		{code("57P05"), outage},
		{new(pgconn.ConnectError), refused}, // as by TLS: nothing of the network is said
		{code("08004"), refused},
		{code("08P01"), refused},
		{code("28000"), refused},
		{code("28P01"), refused}, // wrong password
		{code("3D000"), refused}, // no such database
		{code("42501"), refused}, // not allowed
		{code("42P01"), refused}, // no such table
		{code("53100"), refused}, // disk full
		{code("53300"), refused}, // too many connections
		{code("57P04"), refused}, // the database was dropped
		{code("58030"), refused},
		{code("40001"), retryable},
		{code("40P01"), retryable},
		{code("55P03"), retryable},
		{code("57014"), retryable},
		{code("23514"), retryable}, // of a partition's bounds
		{&pgconn.PgError{Code: "23514", ConstraintName: "of_a_table"}, other},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("wrapped: %w", err)
		}
		for what, got := range map[string]bool{outage: postgres.Outage(err), refused: postgres.Refused(err), retryable: postgres.Retryable(err)} {
			if got != (what == c.want) {
				t.Errorf("%v: %s is %v", err, what, got)
			}
		}
	}
}

// What real failures look like, each as it comes back from a connection.
func TestOutageOfAServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, pgtest.WithoutMigrations())
	ctx := testkit.Context(t)
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
	pgtest.Exec(t, server.AdminURL(), "CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
	for what, change := range map[string]func(*url.URL){
		"no such role":     func(u *url.URL) { u.User = url.User("nobody") },
		"no such database": func(u *url.URL) { u.Path = "/nothing" },
		"no more sessions": func(u *url.URL) { u.User = url.User("crowded") },
	} {
		u, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		if _, err := postgres.Connect(ctx, u.String(), nil); !postgres.Refused(err) || postgres.Outage(err) {
			t.Errorf("%s: %v", what, err)
		}
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
