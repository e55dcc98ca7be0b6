package postgres_test

import (
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// All connections of a pool die at once, as when the server restarts. No request meets one.
func TestDeadConnections(t *testing.T) {
	ctx := testkit.Context(t)
	url := pgtest.NewDatabase(t)
	pool, err := postgres.Open(ctx, url, postgres.PoolOptions{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	other, err := postgres.Connect(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	var held []*pgxpool.Conn
	for range 4 {
		c, err := pool.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	for _, c := range held {
		pid := c.Conn().PgConn().PID()
		c.Release()
		// It waits until the session has ended.
		if _, err := other.Exec(ctx, "SELECT pg_terminate_backend($1, 10000)", pid); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, "SELECT 1"); err != nil {
		t.Errorf("on dead connections: %v", err)
	}
}

// What a server says unasked costs a round trip, and not the connection.
func TestNoticeOnAnIdleConnection(t *testing.T) {
	ctx := testkit.Context(t)
	pool, err := postgres.Open(ctx, pgtest.NewDatabase(t), postgres.PoolOptions{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	listening, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listening.Exec(ctx, "LISTEN something"); err != nil {
		t.Fatal(err)
	}
	pid := listening.Conn().PgConn().PID()
	other, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	listening.Release()
	if _, err := other.Exec(ctx, "NOTIFY something"); err != nil {
		t.Fatal(err)
	}
	again, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Conn().PgConn().PID(); got != pid {
		t.Errorf("session %d, want the one that listens, %d", got, pid)
	}
	again.Release()
	other.Release()
}
