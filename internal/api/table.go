package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"quotad/internal/plans"
	"quotad/internal/quota/ledger"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// problemOf turns any error into what the client may see of it. What is not in the
// table is an internal error: its text stays in the log. For a 5xx the detail is the
// sentinel's own text, since what wraps it may name hosts and statements.
func problemOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if fields, ok := errors.AsType[model.FieldErrors](err); ok && len(fields) > 0 {
		return invalidFields(fields)
	}
	if _, ok := errors.AsType[*model.StaleError](err); ok {
		return &fault{kind: kindBusy, detail: "the plan changes faster than this hit could be judged; nothing was charged"}
	}
	if room, ok := errors.AsType[*ledger.NoRoomError](err); ok {
		return &fault{kind: kindDoesNotFit, detail: room.Error()}
	}
	if much, ok := errors.AsType[*ledger.TooMuchError](err); ok {
		return invalid("used", much.Error())
	}
	for i := range errorTable {
		if e := &errorTable[i]; errors.Is(err, e.err) {
			if e.kind.status < http.StatusInternalServerError && e.text == "" {
				return &fault{kind: e.kind, detail: err.Error()}
			}
			return &fault{kind: e.kind, detail: e.detail()}
		}
	}
	return broken
}

// broken is what is said of a defect of quotad's.
var broken = &fault{kind: kindInternal, detail: "something went wrong here: quotad's log has the cause. Look at what there is before you send it again, and report it if it stays"}

// errorTable is the one place where errors become HTTP.
var errorTable = []errorEntry{
	// The database said no for a reason of its own: a defect here, and no outage.
	{err: session.ErrInternal, kind: kindInternal},
	{err: session.ErrOutcomeUnknown, kind: kindOutcomeUnknown, text: "the database's answer was lost: the request was done once or not at all. Sent again with the same id it is settled, charged once; so is the commit or release of a reservation. Without an id GET first what it was to change; for a hit that is the customer's quota or usage"},
	{err: session.ErrUnavailable, kind: kindUnavailable, text: session.ErrUnavailable.Error() + ". Send it again in a second (Retry-After)"},
	{err: session.ErrNoSession, kind: kindNoSession, text: session.ErrNoSession.Error() + ". The operator is told by quotad's log and /readyz. Send it again later (Retry-After)"},
	{err: session.ErrBusy, kind: kindBusy},
	{err: session.ErrStopped, kind: kindStopping},
	{err: ledger.ErrOtherPayload, kind: kindIDReused, text: "the id was used for another request of this customer: send what was sent under it then, or this under a new id. Nothing was done"},
	{err: ledger.ErrUnderWay, kind: kindUnderWay, text: "a request with this id is still under way: send it again after Retry-After, with the same id. Nothing was done by this one"},
	{err: ledger.ErrUnknownHit, kind: kindNotFound},
	{err: ledger.ErrUnknownReservation, kind: kindNotFound},
	{err: ledger.ErrSettled, kind: kindConflict},
	{err: ledger.ErrManyReservations, kind: kindConflict, text: "the customer has " + strconv.Itoa(ledger.MaxOpen) + " reservations open on the meter, which is the most: commit or release some, or wait until they expire. Nothing was charged"},
	{err: ledger.ErrNoSuchLimit, kind: kindNotFound},
	{err: ledger.ErrFuture, kind: kindInvalid},
	{err: ledger.ErrClosedPeriod, kind: kindConflict},
	{err: plans.ErrUnknownCustomer, kind: kindNotFound},
	{err: plans.ErrUnknownMeter, kind: kindNotFound},
	{err: plans.ErrUnknownPlan, kind: kindNotFound},
	{err: plans.ErrUnknownVersion, kind: kindNotFound},
	{err: plans.ErrUnknownKey, kind: kindNotFound},
	{err: plans.ErrUnknownClock, kind: kindNotFound},
	{err: plans.ErrUnknownLimit, kind: kindNotFound},
	{err: plans.ErrUnknownOverride, kind: kindNotFound},
	{err: plans.ErrNotInPlan, kind: kindNotInPlan},
	{err: ledger.ErrLost, kind: kindNotInPlan},
	{err: plans.ErrArchived, kind: kindConflict},
	{err: plans.ErrPrecondition, kind: kindPrecondition},
	{err: plans.ErrExists, kind: kindPrecondition},
	{err: plans.ErrPreconditionRequired, kind: kindPreconditionRequired},
	// Decide reports a deadline that passes after the hit was sent as an unknown
	// outcome, so here nothing was sent.
	{err: context.DeadlineExceeded, kind: kindBusy, text: "waited too long; nothing was charged or stored"},
	{err: context.Canceled, kind: kindBusy, text: "the client went away; nothing was charged or stored"},
}

type errorEntry struct {
	err  error
	kind *kind
	text string // instead of the error's own
}

func (e *errorEntry) detail() string {
	if e.text != "" {
		return e.text
	}
	return e.err.Error()
}
