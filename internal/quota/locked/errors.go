package locked

import (
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// What operations beyond plain hits answer when they are not done. Nothing was charged or
// given back then.
var (
	// ErrOtherPayload: the id was used for something else.
	ErrOtherPayload = errors.New("the id was used for another request; nothing was done")
	// ErrRefunded: the hit was admitted, and all of it was given back since.
	ErrRefunded = errors.New("the hit of this id was refunded in full; nothing was charged")
	// ErrUnderWay: a request with the same id is under way, and did not end in time.
	ErrUnderWay = errors.New("a request with this id is still under way; nothing was done by this one")
	// ErrLost: the target is Lost, and no receipt has an answer to be given again.
	ErrLost = errors.New("the plan does not have the meter; nothing was charged")
	// ErrLevel: the operation is not for a level meter.
	ErrLevel = errors.New("is a level meter, which counts what is held: units are taken by hits, given up by refunds, and set by PUT /v1/customers/{key}/levels/{meter}; nothing was done")
	// ErrNoLevel: the operation is for level meters only.
	ErrNoLevel = errors.New("is no level meter, so it has no level to be set; nothing was done")
	// ErrUnknownHit: there is no receipt of the hit that is to be refunded.
	ErrUnknownHit = errors.New("there is no admitted hit with that id on the meter, or its id is no longer kept; nothing was given back")
	// ErrUnknownReservation: there is none of that id, or it is no longer kept.
	ErrUnknownReservation = errors.New("there is no such reservation, or it is no longer kept; nothing was done")
	// ErrSettled: the reservation was committed, with another cost, or released before.
	ErrSettled = errors.New("the reservation was settled before; nothing was done")
	// ErrArchived: usage of that time is archived, so it is not corrected, billed or shown any more.
	ErrArchived = errors.New("usage of that time is archived: it cannot be changed, billed again or shown any more; nothing was done")
	// ErrManyReservations: the customer has as many reservations open on the meter as it may have.
	ErrManyReservations = errors.New("too many reservations of the customer are open on the meter; nothing was charged")
)

// ManyReservationsError is ErrManyReservations, and says the bound.
type ManyReservationsError struct{ Most int }

func (e *ManyReservationsError) Error() string {
	return fmt.Sprintf("the customer has %d reservations open on the meter, which is the most (--max-reservations): commit or release some, or wait until they expire. Nothing was charged",
		e.Most)
}

// Unwrap returns ErrManyReservations.
func (e *ManyReservationsError) Unwrap() error { return ErrManyReservations }

// SettledError is ErrSettled, and says how.
type SettledError struct {
	Committed bool  // not released
	Cost      int64 // units that were committed
}

func (e *SettledError) Error() string { return ErrSettled.Error() }

// Unwrap returns ErrSettled.
func (e *SettledError) Unwrap() error { return ErrSettled }

// NoRoomError says that a commit does not fit. Nothing changed.
type NoRoomError struct {
	Most     int64          // the largest cost that could be committed now
	Decision model.Decision // the refusal of what goes beyond what is reserved
	Late     bool           // the reservation had expired
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("the cost does not fit: at most %d can be committed now; nothing was charged", e.Most)
}

// ManyValuesError says that a charge would make more counters of attributes' values than one
// customer may have made in a second. Nothing was charged, and no counter was made.
type ManyValuesError struct{ Most int }

func (e *ManyValuesError) Error() string {
	return fmt.Sprintf("the customer's hits bring more new values of attributes than a node takes in a second (%d); values that are known go on. Send it again after Retry-After. Nothing was charged",
		e.Most)
}

// Unwrap returns ErrBusy: it may be sent again.
func (e *ManyValuesError) Unwrap() error { return session.ErrBusy }
