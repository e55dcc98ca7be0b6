package session

import (
	"errors"
	"fmt"

	"quotad/internal/postgres"
)

// The following errors are returned by Decide, Look and the reads if there is no decision. Their text specifies
// whether anything can have been charged.
var (
	// ErrBusy means that too many hits are waiting already. Nothing was charged.
	ErrBusy = errors.New("too many hits are waiting; nothing was charged")
	// ErrShare is an ErrBusy for one sender, which has its share of a queue, while other senders' hits still find
	// room. Nothing was charged.
	ErrShare = fmt.Errorf("%w: their sender has its share of the queue", ErrBusy)
	// ErrUnavailable means that the database is out of reach, see postgres.Outage. Nothing was charged, and
	// on_outage decides the hit.
	ErrUnavailable = errors.New("the database cannot be reached; nothing was charged")
	// ErrNoSession means that the database can be reached but does not allow this node to work. A login, a
	// privilege, a table or a free connection is missing, or the database's clock cannot be used. Nothing was
	// charged. on_outage must admit nothing, because the problem may last until an operator solves it.
	ErrNoSession = errors.New("the database does not serve this node; nothing was charged")
	// ErrReadOnly is an ErrNoSession for a database that accepts no writes. Nothing was charged.
	ErrReadOnly = fmt.Errorf("%w: it is read only", ErrNoSession)
	// ErrOutcomeUnknown means that the connection broke or the deadline passed after the hit was sent. The hit was
	// charged once or not at all, and this node cannot determine which.
	ErrOutcomeUnknown = errors.New("the database's answer was lost; the hit was charged once or not at all")
	// ErrInternal means that the database rejected the statement because of a bug in quotad and not because of an
	// outage. Nothing was charged, and on_outage must admit nothing.
	ErrInternal = errors.New("the database refused a statement of quotad's; nothing was charged")
	// ErrStopped means that the engine is stopping. Nothing was charged.
	ErrStopped = errors.New("quotad is stopping; nothing was charged")
)

// Unreached wraps an error that kept a request from the database for the caller: in ErrUnavailable in an outage,
// in ErrReadOnly, or otherwise in ErrNoSession.
func Unreached(err error) error {
	why := ErrNoSession
	switch {
	case postgres.Outage(err):
		why = ErrUnavailable
	case postgres.ReadOnly(err):
		why = ErrReadOnly
	}
	return fmt.Errorf("%w: %w", why, err)
}
