package store

import (
	"errors"
	"fmt"

	"quotad/internal/postgres"
	"quotad/internal/quota/session"
)

// Classify turns a failed statement's error into one that says what the caller may do.
// session.ErrUnavailable is an outage. session.ErrNoSession means that the database does not
// serve this node. session.ErrBusy means that the server rolled back what may succeed the next
// time. All other errors stay as they are.
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

// Settle is Classify for the error of a COMMIT: session.ErrOutcomeUnknown unless the error proves
// that nothing was stored.
func Settle(err error) error {
	if err == nil || postgres.NotCommitted(err) {
		return Classify(err)
	}
	return fmt.Errorf("saving: %w: %w", session.ErrOutcomeUnknown, err)
}
