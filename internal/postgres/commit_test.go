package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// neverSent is an error of which the driver says that it occurred before anything was sent.
type neverSent struct{ error }

func (neverSent) SafeToRetry() bool { return true }
func (e neverSent) Unwrap() error   { return e.error }

func TestNotCommitted(t *testing.T) {
	t.Parallel()
	said := func(severity, code string) error {
		return fmt.Errorf("commit: %w", &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code})
	}
	unsent := neverSent{errors.New("write failed")}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                           {nil, false},
		"a constraint that waited":           {said("ERROR", "23505"), true},
		"serialization failure":              {said("ERROR", "40001"), true},
		"deadlock":                           {said("ERROR", "40P01"), true},
		"cancelled, statement_timeout":       {said("ERROR", "57014"), true},
		"lock_timeout":                       {said("ERROR", "55P03"), true},
		"disk full":                          {said("ERROR", "53100"), true},
		"a standby":                          {said("ERROR", "25006"), true},
		"stopped":                            {said("FATAL", "57P01"), false},
		"another session crashed":            {said("FATAL", "57P02"), false},
		"starting":                           {said("FATAL", "57P03"), false},
		"dropped":                            {said("FATAL", "57P04"), false},
		"transaction_timeout":                {said("FATAL", "25P04"), false},
		"a fault of the server":              {said("PANIC", "XX000"), false},
		"idle in the transaction":            {said("FATAL", "25P03"), true},
		"idle":                               {said("FATAL", "57P05"), true},
		"a pooler lost its server":           {said("ERROR", "08006"), false},
		"a pooler does not know":             {said("ERROR", "08007"), false},
		"a pooler, the protocol":             {said("FATAL", "08P01"), false},
		"not known to the server":            {said("ERROR", "40003"), false},
		"no severity":                        {said("", "23505"), false},
		"another language":                   {&pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "23505"}, true},
		"answered ROLLBACK":                  {fmt.Errorf("saving: %w", pgx.ErrTxCommitRollback), true},
		"committed before, or rolled back":   {pgx.ErrTxClosed, false},
		"cut":                                {io.ErrUnexpectedEOF, false},
		"cut, and closed":                    {errors.Join(io.ErrUnexpectedEOF, unsent), false},
		"reset":                              {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, false},
		"the deadline of the socket":         {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, false},
		"the deadline":                       {context.DeadlineExceeded, false},
		"given up":                           {context.Canceled, false},
		"not sent":                           {fmt.Errorf("saving: %w", unsent), true},
		"closed, before or meanwhile":        {neverSent{pgconn.ErrConnClosed}, false},
		"not sent, and closed":               {errors.Join(unsent, unsent), true},
		"refused, and closed":                {errors.Join(said("ERROR", "23505"), unsent), true},
		"a sentence of ours about not sent":  {fmt.Errorf("%w: %w", errors.New("unavailable"), unsent), false},
		"a sentence of ours about a refusal": {fmt.Errorf("%w: %w", errors.New("busy"), said("ERROR", "40001")), true},
	} {
		if got := postgres.NotCommitted(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNotCommittedByAServer provokes what can be provoked, and looks at what was stored.
func TestNotCommittedByAServer(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := pgtest.Server(t, pgtest.WithoutMigrations(), pgtest.WithSettings(map[string]string{
		"synchronous_standby_names": "nobody", "synchronous_commit": "local",
	}))
	pool, err := postgres.Open(ctx, server.URL(), postgres.PoolOptions{
		StatementTimeout: -1, // one waits for the whole test, and another is idle meanwhile
		Params:           map[string]string{"synchronous_commit": "local", "idle_in_transaction_session_timeout": "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	exec := func(t *testing.T, sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, `CREATE TABLE commits (name text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)`)
	other, err := pool.Begin(ctx) // whoever commits the same key waits for it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(ctx) }()
	if _, err := other.Exec(ctx, "INSERT INTO commits VALUES ('other')"); err != nil {
		t.Fatal(err)
	}
	// awaits waits until a query about the session with the id $1 is true.
	awaits := func(t *testing.T, pid uint32, sql string) {
		t.Helper()
		testkit.Eventually(t, sql, func() (met bool) {
			return pool.QueryRow(ctx, sql, pid).Scan(&met) == nil && met
		})
	}
	// during does a thing while a COMMIT of a session waits for something.
	during := func(wait, do string) func(t *testing.T, pid uint32) {
		return func(t *testing.T, pid uint32) {
			awaits(t, pid, "SELECT wait_event = '"+wait+"' FROM pg_stat_activity WHERE pid = $1")
			exec(t, do, pid)
		}
	}
	given, give := context.WithCancel(ctx)
	give()
	for name, c := range map[string]struct {
		first                 string                         // in the transaction
		before                func(t *testing.T, pid uint32) // the COMMIT
		during                func(t *testing.T, pid uint32) // the COMMIT
		within                context.Context                // of the COMMIT
		fails, proved, stored bool
	}{
		"done":            {stored: true},
		"refused":         {first: "INSERT INTO commits VALUES ('refused')", fails: true, proved: true},
		"given up before": {within: given, fails: true, proved: true},
		"idle": {first: "SET LOCAL idle_in_transaction_session_timeout = '1ms'", before: func(t *testing.T, pid uint32) {
			awaits(t, pid, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)")
		}, fails: true, proved: true},
		// The two of one code: the first was rolled back, the second was not.
		"ended while it checks": {
			first:  "INSERT INTO commits VALUES ('other')",
			during: during("transactionid", "SELECT pg_terminate_backend($1)"), fails: true,
		},
		"ended while the standby is late": {
			first: "SET LOCAL synchronous_commit = on", during: during("SyncRep", "SELECT pg_terminate_backend($1)"),
			fails: true, stored: true,
		},
		"cancelled meanwhile": {first: "SET LOCAL synchronous_commit = on", during: during("SyncRep", "SELECT pg_cancel_backend($1)"), stored: true},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(ctx) }()
			if _, err := tx.Exec(ctx, "INSERT INTO commits VALUES ($1)", name); err != nil {
				t.Fatal(err)
			}
			if c.first != "" {
				if _, err := tx.Exec(ctx, c.first); err != nil {
					t.Fatal(err)
				}
			}
			pid, within := tx.Conn().PgConn().PID(), ctx
			if c.within != nil {
				within = c.within
			}
			if c.before != nil {
				c.before(t, pid)
			}
			answer := make(chan error, 1)
			go func() { answer <- tx.Commit(within) }()
			if c.during != nil {
				c.during(t, pid)
			}
			err = <-answer
			if (err != nil) != c.fails || postgres.NotCommitted(err) != c.proved {
				t.Errorf("%v, want %v: proved %v", err, c.fails, !c.proved)
			}
			var stored bool
			if err := pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM commits WHERE name = $1)", name).Scan(&stored); err != nil || stored != c.stored {
				t.Errorf("stored %v, %v", stored, err)
			}
		})
	}
}
