package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

func TestErrorsAreTold(t *testing.T) {
	code := func(code string) error { return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code}) }
	if err := Classify(code("40001")); !errors.Is(err, session.ErrBusy) || errors.Is(err, session.ErrUnavailable) {
		t.Errorf("rolled back: %v", err)
	}
	for _, c := range []struct {
		err    error
		outage bool
	}{
		{plans.ErrArchived, false},
		{fmt.Errorf("%w", model.FieldErrors{{Field: "a", Detail: "b"}}), false},
		{errors.New("other"), false},
		{context.Canceled, false},
		{context.DeadlineExceeded, true},
		{io.ErrUnexpectedEOF, true},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		{code("23505"), false},
		{code("57014"), false},
		{code("57P01"), true},
		{code("08006"), true},
	} {
		once := Classify(c.err)
		if got := errors.Is(once, session.ErrUnavailable); got != c.outage || !errors.Is(once, c.err) {
			t.Errorf("%v: outage %v", c.err, got)
		}
		if twice := Classify(once); twice.Error() != once.Error() {
			t.Errorf("%v: wrapped twice: %v", c.err, twice)
		}
	}
	for _, refused := range []string{"53300", "28P01", "42501", "25006"} {
		if err := Classify(code(refused)); !errors.Is(err, session.ErrNoSession) || errors.Is(err, session.ErrUnavailable) {
			t.Errorf("%s: %v", refused, err)
		}
	}
	if Classify(nil) != nil || ClassifyCommit(nil) != nil {
		t.Error("nil became an error")
	}
	refused := &pgconn.PgError{Code: "23505", SeverityUnlocalized: "ERROR"}
	for err, unknown := range map[error]bool{refused: false, code("57P01"): true, io.EOF: true, context.Canceled: true} {
		if got := errors.Is(ClassifyCommit(err), session.ErrOutcomeUnknown); got != unknown {
			t.Errorf("%v at a commit: unknown %v", err, got)
		}
	}
}
