package closing

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestAnEndedCommitIsUnknown: an administrator ends a session while its COMMIT is under way. The
// server's answer does not say whether the COMMIT was done, and so must ours not. A transaction
// that only reads has no outcome.
func TestAnEndedCommitIsUnknown(t *testing.T) {
	w, _ := newBilled(t, pgtest.NewDatabase(t), 1, 1)
	pgtest.Exec(t, w.url, `CREATE TABLE slow (name text UNIQUE DEFERRABLE INITIALLY DEFERRED)`)
	other, err := w.store.Pool().Begin(w.Context())
	w.check(err)
	defer func() { _ = other.Rollback(context.WithoutCancel(w.Context())) }()
	_, err = other.Exec(w.Context(), `INSERT INTO slow VALUES ('one')`) // whoever commits one more waits
	w.check(err)
	var pid uint32
	began, answer := make(chan struct{}), make(chan error, 1)
	go func() {
		answer <- w.accounts.Write(w.Context(), func(ctx context.Context, tx pgx.Tx) error {
			defer close(began)
			pid = tx.Conn().PgConn().PID()
			_, err := tx.Exec(ctx, `INSERT INTO slow VALUES ('one')`)
			return err
		})
	}()
	<-began
	testkit.Eventually(t, "the COMMIT waits", func() bool {
		return pgtest.Query[bool](t, w.url, `SELECT query ILIKE 'commit' AND wait_event = 'transactionid' FROM pg_stat_activity WHERE pid = $1`, pid)
	})
	pgtest.Exec(t, w.url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'commit' AND wait_event = 'transactionid'`)
	if err := <-answer; !errors.Is(err, session.ErrOutcomeUnknown) || errors.Is(err, session.ErrUnavailable) {
		t.Errorf("it was answered %v", err)
	}
	err = w.accounts.Snapshot(w.Context(), func(ctx context.Context, tx pgx.Tx) error {
		pid = tx.Conn().PgConn().PID()
		_, err := w.store.Pool().Exec(ctx, `SELECT pg_terminate_backend($1, 10000)`, pid)
		return err
	})
	if err == nil || errors.Is(err, session.ErrOutcomeUnknown) {
		t.Errorf("a transaction that reads: %v", err)
	}
}
