package locked

import (
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// The errors of operations other than plain hits. If an operation returns one of these errors, nothing was
// charged or returned.
var (
	// ErrOtherPayload reports that the id was used for another request.
	ErrOtherPayload = errors.New("the id was used for another request; nothing was done")
	// ErrRefunded reports that the hit was admitted and has been refunded in full.
	ErrRefunded = errors.New("the hit of this id was refunded in full; nothing was charged")
	// ErrUnderWay reports that a request with the same id is in progress and did not end in time.
	ErrUnderWay = errors.New("a request with this id is still under way; nothing was done by this one")
	// ErrLost reports that the target is Lost and that no receipt contains an answer to replay.
	ErrLost = errors.New("the plan does not have the meter; nothing was charged")
	// ErrLevel reports that the operation is not for a level meter.
	ErrLevel = errors.New("is a level meter, which counts what is held: units are taken by hits, given up by refunds, and set by PUT /v1/customers/{key}/levels/{meter}; nothing was done")
	// ErrNoLevel reports that the operation is for level meters only.
	ErrNoLevel = errors.New("is no level meter, so it has no level to be set; nothing was done")
	// ErrUnknownHit reports that there is no receipt of the hit to refund.
	ErrUnknownHit = errors.New("there is no admitted hit with that id on the meter, or its id is no longer kept; nothing was given back")
	// ErrUnknownReservation reports that no reservation has the id, or that the reservation is no longer stored.
	ErrUnknownReservation = errors.New("there is no such reservation, or it is no longer kept; nothing was done")
	// ErrSettled reports that the reservation was committed with another cost, or was released.
	ErrSettled = errors.New("the reservation was settled before; nothing was done")
	// ErrArchived reports that usage of that time is archived, so it is no longer corrected, billed or shown.
	ErrArchived = errors.New("usage of that time is archived: it cannot be changed, billed again or shown any more; nothing was done")
	// ErrManyReservations reports that the customer has the maximum number of open reservations on the meter.
	ErrManyReservations = errors.New("too many reservations of the customer are open on the meter; nothing was charged")
)

// ManyReservationsError is ErrManyReservations with the maximum.
type ManyReservationsError struct{ Most int }

func (e *ManyReservationsError) Error() string {
	return fmt.Sprintf("the customer has %d reservations open on the meter, which is the most (--max-reservations): commit or release some, or wait until they expire. Nothing was charged",
		e.Most)
}

// Unwrap returns ErrManyReservations.
func (e *ManyReservationsError) Unwrap() error { return ErrManyReservations }

// SettledError is ErrSettled with the way in which the reservation was settled.
type SettledError struct {
	Committed bool  // whether the reservation was committed, not released
	Cost      int64 // committed units
}

func (e *SettledError) Error() string { return ErrSettled.Error() }

// Unwrap returns ErrSettled.
func (e *SettledError) Unwrap() error { return ErrSettled }

// NoRoomError reports that a commit does not fit. Nothing changed.
type NoRoomError struct {
	Most     int64          // the highest cost that could be committed now
	Decision model.Decision // the refusal of the units beyond the reserved units
	Late     bool           // whether the reservation had expired
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("the cost does not fit: at most %d can be committed now; nothing was charged", e.Most)
}

// ManyValuesError reports that a charge would create more counters of attribute values than one customer may
// create in a second. Nothing was charged, and no counter was created.
type ManyValuesError struct{ Most int }

func (e *ManyValuesError) Error() string {
	return fmt.Sprintf("the customer's hits bring more new values of attributes than a node takes in a second (%d); values that are known go on. Send it again after Retry-After. Nothing was charged",
		e.Most)
}

// Unwrap returns ErrBusy, because the request may be sent again.
func (e *ManyValuesError) Unwrap() error { return session.ErrBusy }
