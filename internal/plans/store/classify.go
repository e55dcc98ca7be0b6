package store

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/quota/session"
)

// Classify turns a failed statement's error into what the caller may do about it:
// session.ErrUnavailable in an outage, session.ErrNoSession when the database does not serve
// this node, session.ErrBusy when the server rolled back what may pass the next time. All other
// errors stay what they are: sentinels, field errors, a caller that gave up, and the server's
// other complaints about a statement.
func Classify(err error) error {
	switch {
	case err == nil, errors.Is(err, session.ErrUnavailable), errors.Is(err, session.ErrNoSession), errors.Is(err, session.ErrBusy):
		return err
	case postgres.Outage(err), postgres.Refused(err):
		return session.Unreached(err)
	case postgres.Retryable(err):
		return fmt.Errorf("%w: %w", session.ErrBusy, err)
	}
	return err
}

// settle is Classify for the error of a COMMIT: unless the server itself refused it,
// nobody here can know whether the transaction counts.
func settle(err error) error {
	var answered *pgconn.PgError
	if err == nil || errors.As(err, &answered) && !postgres.Outage(err) && !postgres.Refused(err) {
		return Classify(err)
	}
	return fmt.Errorf("saving: %w: %w", session.ErrOutcomeUnknown, err)
}
