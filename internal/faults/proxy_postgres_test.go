package faults

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// On the way to PostgreSQL an answer is lost after the commit; what was cut before, or
// within, is not done.
func TestPostgresProxy(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), pgtest.NewDatabase(t)
	look, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = look.Close(ctx) }()
	if _, err := look.Exec(ctx, "CREATE TABLE done (kind text)"); err != nil {
		t.Fatal(err)
	}
	unsparing := toPostgres
	unsparing.spared = 0
	for kind, done := range map[fault]int64{none: 1, cutBefore: 0, cutWithin: 0, cutUnanswered: 1, cutWithinAnswer: 1, stall: 1} {
		p := newProxy(t, addressOf(t, databaseURL), unsparing, newDice(1, 0, time.Millisecond, kind))
		conn, err := postgres.Connect(ctx, throughProxy(t, databaseURL, p), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "SELECT count(*) FROM done WHERE kind = $1", kind.String()); err != nil {
			t.Fatalf("%s: before the fault: %v", kind, err)
		}
		p.dice.set(1)
		err = insert(ctx, conn, kind.String())
		if broken := kind != none && kind != stall; broken != (err != nil) {
			t.Errorf("%s: the client saw %v", kind, err)
		}
		_ = conn.Close(ctx)
		p.close()
		if kind != none && p.count(kind) == 0 {
			t.Errorf("%s: not counted", kind)
		}
		var n int64
		testkit.Eventually(t, "the server has ended what was cut", func() bool {
			err := look.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'").Scan(&n)
			return err == nil && n == 0
		})
		if err := look.QueryRow(ctx, "SELECT count(*) FROM done WHERE kind = $1", kind.String()).Scan(&n); err != nil || n != done {
			t.Errorf("%s: %d rows, not %d: %v", kind, n, done, err)
		}
	}
}

// insert is one pipeline: one message of the client's, one answer.
func insert(ctx context.Context, conn *pgx.Conn, kind string) error {
	result := conn.PgConn().ExecParams(ctx, "INSERT INTO done VALUES ($1)", [][]byte{[]byte(kind)}, nil, nil, nil).Read()
	return result.Err
}
