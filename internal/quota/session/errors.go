package session

import (
	"errors"
	"fmt"

	"quotad/internal/postgres"
)

// What Decide, Look and the reads answer when there is no decision. The text says whether anything
// can have been charged.
var (
	// ErrBusy: too much is waiting already. Nothing was charged.
	ErrBusy = errors.New("too many hits are waiting; nothing was charged")
	// ErrShare: an ErrBusy of one sender, which has its share of a queue waiting, while others'
	// hits still find room. Nothing was charged.
	ErrShare = fmt.Errorf("%w: their sender has its share of the queue", ErrBusy)
	// ErrUnavailable: the database is out of reach, see postgres.Outage. Nothing was charged,
	// and on_outage says what becomes of the hit.
	ErrUnavailable = errors.New("the database cannot be reached; nothing was charged")
	// ErrNoSession: the database is there and does not let this node work. A login, a right, a
	// table or a free session is missing, or its clock cannot be used. Nothing was charged.
	// on_outage must let nothing in: the trouble may last until somebody puts it right.
	ErrNoSession = errors.New("the database does not serve this node; nothing was charged")
	// ErrReadOnly: an ErrNoSession of a database that takes no writes. Nothing was charged.
	ErrReadOnly = fmt.Errorf("%w: it is read only", ErrNoSession)
	// ErrOutcomeUnknown: the connection broke or the deadline passed after the hit was
	// sent. It was charged once or not at all, and nobody here can know which.
	ErrOutcomeUnknown = errors.New("the database's answer was lost; the hit was charged once or not at all")
	// ErrInternal: the database refused the statement for another reason than an outage,
	// a fault of quotad's. Nothing was charged, and nothing may be let in by on_outage.
	ErrInternal = errors.New("the database refused a statement of quotad's; nothing was charged")
	// ErrStopped: the engine is stopping. Nothing was charged.
	ErrStopped = errors.New("quotad is stopping; nothing was charged")
)

// Unreached is what callers are told of an error that kept a request from the database:
// ErrUnavailable in an outage, ErrReadOnly, or else ErrNoSession.
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
