package problem

import (
	"context"
	"errors"
	"net/http"

	"quotad/internal/api/respond"
	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/quota/session"
	"quotad/internal/webhooks"
)

// Of converts any error into the problem that the client may see. An error that is not in the table becomes an
// internal error, whose text appears only in the log. For a 5xx the detail is the sentinel's own text, because
// the text that wraps it may contain hosts and statements.
func Of(err error) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	if fields, ok := errors.AsType[model.FieldErrors](err); ok && len(fields) > 0 {
		return InvalidFields(fields)
	}
	if _, ok := errors.AsType[*model.StaleError](err); ok {
		return &Fault{Kind: KindBusy, Detail: "the plan changes faster than this hit could be judged; nothing was charged"}
	}
	if room, ok := errors.AsType[*locked.NoRoomError](err); ok {
		return &Fault{Kind: KindDoesNotFit, Detail: room.Error()}
	}
	if many, ok := errors.AsType[*locked.ManyValuesError](err); ok {
		return &Fault{Kind: KindBusy, Detail: many.Error()}
	}
	if errors.Is(err, locked.ErrLevel) || errors.Is(err, locked.ErrNoLevel) {
		return Invalid("meter", err.Error())
	}
	if high, ok := errors.AsType[*locked.TooHighError](err); ok {
		return Invalid("cost", high.Error())
	}
	if much, ok := errors.AsType[*locked.TooMuchError](err); ok {
		return Invalid("used", much.Error())
	}
	for i := range errorTable {
		if e := &errorTable[i]; errors.Is(err, e.err) {
			if e.kind.Status < http.StatusInternalServerError && e.text == "" {
				return &Fault{Kind: e.kind, Detail: err.Error()}
			}
			return &Fault{Kind: e.kind, Detail: e.detail()}
		}
	}
	return Broken
}

// Broken is the problem for a defect of quotad.
var Broken = &Fault{
	Kind:   KindInternal,
	Detail: "something went wrong here: quotad's log has the cause. Look at what there is before you send it again, and report it if it stays",
}

// errorTable is the only place in which errors are mapped to HTTP.
var errorTable = []errorEntry{
	// The database rejected a statement for a reason of its own. The cause is a defect in quotad and not an
	// outage.
	{err: session.ErrInternal, kind: KindInternal},
	{err: model.ErrMalformed, kind: KindInternal},
	{
		err: session.ErrOutcomeUnknown, kind: KindOutcomeUnknown,
		text: "the database's answer was lost: the request was done once or not at all. Sent again with the same id it is settled, charged once; so is the commit or release of a reservation. Without an id GET first what it was to change; for a hit that is the customer's quota or usage",
	},
	{err: session.ErrSlow, kind: KindUnavailable, text: "the database answers too slowly; nothing was charged. Send it again in a second (Retry-After)"},
	{err: session.ErrUnavailable, kind: KindUnavailable, text: session.ErrUnavailable.Error() + ". Send it again in a second (Retry-After)"},
	{
		err: session.ErrReadOnly, kind: KindReadOnly,
		text: "the database is read only: a standby, or set so by somebody; nothing was charged. The operator is told by quotad's log and /readyz. Send it again later (Retry-After)",
	},
	{err: session.ErrNoSession, kind: KindNoSession, text: session.ErrNoSession.Error() +
		". The operator is told by quotad's log and /readyz. Send it again later (Retry-After)"},
	{
		err: session.ErrShare, kind: KindBusy,
		text: "too many requests of this API key are waiting: it has its share of the queue, and other keys have theirs. Nothing was charged. Send fewer at once",
	},
	{err: session.ErrBusy, kind: KindBusy},
	{err: session.ErrStopped, kind: KindStopping},
	{
		err: locked.ErrOtherPayload, kind: KindIDReused,
		text: "the id was used for another request of this customer: send what was sent under it then, or this under a new id. Nothing was done",
	},
	{
		err: locked.ErrRefunded, kind: KindRefunded,
		text: "the hit of this id was admitted, and all of it was given back since: to consume units again, send a hit with a new id. Nothing was charged",
	},
	{
		err: locked.ErrUnderWay, kind: KindUnderWay,
		text: "a request with this id is still under way: send it again after Retry-After, with the same id. Nothing was done by this one",
	},
	{err: locked.ErrUnknownHit, kind: KindNotFound},
	{err: locked.ErrUnknownReservation, kind: KindNotFound},
	{err: locked.ErrArchived, kind: KindArchived, text: locked.ErrArchived.Error()},
	{err: locked.ErrSettled, kind: KindConflict},
	{err: locked.ErrManyReservations, kind: KindConflict},
	{err: locked.ErrNoSuchLimit, kind: KindNotFound},
	{err: locked.ErrFuture, kind: KindInvalid},
	{err: play.ErrTooManyHits, kind: KindInvalid},
	{err: plans.ErrUnknownCustomer, kind: KindNotFound},
	{err: plans.ErrUnknownMeter, kind: KindNotFound},
	{err: plans.ErrUnknownPlan, kind: KindNotFound},
	{err: plans.ErrUnknownVersion, kind: KindNotFound},
	{err: plans.ErrUnknownDraft, kind: KindNotFound},
	{err: plans.ErrUnknownKey, kind: KindNotFound},
	{err: plans.ErrUnknownClock, kind: KindNotFound},
	{err: plans.ErrUnknownLimit, kind: KindNotFound},
	{err: plans.ErrUnknownOverride, kind: KindNotFound},
	{err: plans.ErrLinkOver, kind: KindNotFound},
	{err: plans.ErrSessionOver, kind: KindUnauthorized},
	{err: plans.ErrNotInPlan, kind: KindNotInPlan},
	{err: locked.ErrLost, kind: KindNotInPlan},
	{err: plans.ErrSuspended, kind: KindSuspended},
	{err: plans.ErrEnded, kind: KindEnded},
	{err: plans.ErrNotSuspended, kind: KindNotFound},
	{err: plans.ErrNoScheduled, kind: KindNotFound},
	{err: plans.ErrNotSchedulable, kind: KindConflict},
	{err: plans.ErrNoOpenPeriod, kind: KindConflict},
	{err: plans.ErrEndsFirst, kind: KindConflict},
	{err: plans.ErrTooSoon, kind: KindConflict},
	{err: plans.ErrArchived, kind: KindConflict},
	{err: plans.ErrKind, kind: KindConflict},
	{err: plans.ErrBeforePeriod, kind: KindConflict},
	{err: plans.ErrPrecondition, kind: KindPrecondition},
	{err: plans.ErrExists, kind: KindPrecondition},
	{err: plans.ErrPreconditionRequired, kind: KindPreconditionRequired},
	{err: billing.ErrUnknownInvoice, kind: KindNotFound},
	{err: billing.ErrUnknownLine, kind: KindNotFound},
	{err: billing.ErrNoPeriod, kind: KindNotFound},
	{err: billing.ErrFarPreview, kind: KindConflict},
	{err: billing.ErrState, kind: KindConflict},
	{err: billing.ErrHeld, kind: KindConflict},
	{err: billing.ErrReferred, kind: KindConflict},
	{err: billing.ErrTooMuch, kind: KindConflict},
	{err: billing.ErrMoreThanOpen, kind: KindConflict},
	{err: billing.ErrNoCredits, kind: KindConflict},
	{err: billing.ErrUnknownCredit, kind: KindNotFound},
	{err: billing.ErrMoreThanLeft, kind: KindConflict},
	{err: billing.ErrUnknownPayment, kind: KindNotFound},
	{err: billing.ErrReversed, kind: KindConflict},
	{err: billing.ErrNoted, kind: KindConflict},
	{err: billing.ErrMoneyStands, kind: KindConflict},
	{err: billing.ErrTooManyPayments, kind: KindConflict},
	{err: billing.ErrAnonymous, kind: KindConflict},
	{err: billing.ErrTooManyTerms, kind: KindConflict},
	{err: billing.ErrBeforePeriod, kind: KindConflict},
	{err: billing.ErrPaidAhead, kind: KindConflict},
	{err: billing.ErrClosing, kind: KindConflict},
	{err: billing.ErrCurrency, kind: KindConflict},
	{err: billing.ErrUnknownSeller, kind: KindNotFound},
	{err: billing.ErrUnknownPrice, kind: KindNotFound},
	{err: billing.ErrUnknownCap, kind: KindNotFound},
	{err: billing.ErrTooManyCharges, kind: KindConflict},
	{err: billing.ErrOtherPayload, kind: KindIDReused},
	{err: billing.ErrNoLine, kind: KindConflict},
	{err: billing.ErrReconciling, kind: KindBusy},
	{err: billing.ErrReconcileTime, kind: KindBusy},
	{err: webhooks.ErrUnknown, kind: KindNotFound},
	{err: webhooks.ErrTooMany, kind: KindConflict},
	{err: webhooks.ErrDisabled, kind: KindConflict},
	{err: webhooks.ErrReplay, kind: KindConflict},
	{
		err: respond.ErrMemory, kind: KindBusy,
		text: "the requests under way take all the memory that this node gives to bodies and answers; nothing was charged or stored",
	},
	{
		err: respond.ErrMemoryShare, kind: KindBusy,
		text: "the requests of this API key under way take half of the memory that this node gives to bodies and answers, the most for one key; nothing was charged or stored",
	},
	// Decide reports an unknown outcome if a deadline passes after the hit was sent. Therefore nothing was sent
	// in this case.
	{err: context.DeadlineExceeded, kind: KindBusy, text: "waited too long; nothing was charged or stored"},
	{err: context.Canceled, kind: KindBusy, text: "the client went away; nothing was charged or stored"},
}

type errorEntry struct {
	err  error
	kind *Kind
	text string // replaces the error's own text
}

func (e *errorEntry) detail() string {
	if e.text != "" {
		return e.text
	}
	return e.err.Error()
}
