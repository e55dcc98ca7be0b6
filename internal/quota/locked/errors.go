package locked

import (
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// The following errors are returned for operations other than plain hits. If one of them is returned, nothing was
// charged or refunded.
var (
	// ErrOtherPayload means that the id was used for another request.
	ErrOtherPayload = errors.New("the id was used for another request; nothing was done")
	// ErrRefunded means that the hit was admitted and has been refunded in full.
	ErrRefunded = errors.New("the hit of this id was refunded in full; nothing was charged")
	// ErrUnderWay means that a request with the same id is still running and did not end in time.
	ErrUnderWay = errors.New("a request with this id is still under way; nothing was done by this one")
	// ErrLost means that the target is Lost and no receipt has a response to be replayed.
	ErrLost = errors.New("the plan does not have the meter; nothing was charged")
	// ErrLevel means that the operation does not apply to level meters.
	ErrLevel = errors.New("is a level meter, which counts what is held: units are taken by hits, given up by refunds, and set by PUT /v1/customers/{key}/levels/{meter}; nothing was done")
	// ErrNoLevel means that the operation applies to level meters only.
	ErrNoLevel = errors.New("is no level meter, so it has no level to be set; nothing was done")
	// ErrUnknownHit means that there is no receipt of the hit to be refunded.
	ErrUnknownHit = errors.New("there is no admitted hit with that id on the meter, or its id is no longer kept; nothing was given back")
	// ErrUnknownReservation means that there is no reservation with the id, or that it is no longer kept.
	ErrUnknownReservation = errors.New("there is no such reservation, or it is no longer kept; nothing was done")
	// ErrSettled means that the reservation was already committed with another cost, or released.
	ErrSettled = errors.New("the reservation was settled before; nothing was done")
	// ErrArchived means that the usage of that time is archived, so it can no longer be corrected, billed or
	// shown.
	ErrArchived = errors.New("usage of that time is archived: it cannot be changed, billed again or shown any more; nothing was done")
	// ErrManyReservations means that the customer has the maximum number of open reservations on the meter.
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
	Committed bool  // the reservation was committed and not released
	Cost      int64 // the committed units
}

func (e *SettledError) Error() string { return ErrSettled.Error() }

// Unwrap returns ErrSettled.
func (e *SettledError) Unwrap() error { return ErrSettled }

// NoRoomError reports that a commit does not fit. Nothing changed.
type NoRoomError struct {
	Most     int64          // the largest cost that could be committed now
	Decision model.Decision // the refusal of the units beyond the reserved units
	Late     bool           // the reservation had expired
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

// Unwrap returns ErrBusy, because the charge may be sent again.
func (e *ManyValuesError) Unwrap() error { return session.ErrBusy }
