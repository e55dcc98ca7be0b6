package plans

import (
	"errors"
	"fmt"
)

// Sentinel errors that the API turns into problems. Errors of single fields are model.FieldErrors.
var (
	ErrUnknownCustomer = errors.New("no such customer")
	ErrUnknownMeter    = errors.New("no such meter")
	ErrUnknownPlan     = errors.New("no such plan")
	ErrUnknownVersion  = errors.New("the plan has no such version")
	ErrUnknownDraft    = errors.New("the plan has no draft")
	ErrUnknownKey      = errors.New("no such key")
	ErrUnknownClock    = errors.New("no such test clock")
	ErrNotInPlan       = errors.New("the customer's plan does not include this meter")
	// ErrSuspended is returned for hits and reservations while the customer is suspended.
	ErrSuspended = errors.New("the customer is suspended; nothing was charged")
	// ErrEnded is returned for hits and reservations from the ends_at of the customer's account on.
	ErrEnded = errors.New("the customer's subscription has ended; nothing was charged")
	// ErrNotSuspended is returned if there is no suspension to lift.
	ErrNotSuspended = errors.New("the customer is not suspended")
	// ErrNoScheduled is returned if there is no scheduled change to delete.
	ErrNoScheduled = errors.New("the customer has no scheduled change")
	// ErrNotSchedulable is returned if no period has an end at which the change of plan could apply.
	ErrNotSchedulable = errors.New("the change cannot be scheduled")
	ErrNoOpenPeriod   = fmt.Errorf("%w: no billing period of the customer runs now", ErrNotSchedulable)
	ErrEndsFirst      = fmt.Errorf("%w: the customer's billing ends by then: move ends_at first", ErrNotSchedulable)
	ErrTooSoon        = fmt.Errorf("%w: the period ends in less than 2 seconds: try again after that", ErrNotSchedulable)
	ErrUnknownLimit   = errors.New("the customer's plan has no such limit")
	// ErrLinkOver is returned for a link into the portal that was used, is too old, or never existed (410).
	ErrLinkOver = errors.New("the link was used already or is over")
	// ErrSessionOver is returned if a session of the pages ended during the request that found it.
	ErrSessionOver = errors.New("the session is over")
	// ErrKind is returned for a request to change the kind of a meter, because the kind is fixed when the
	// meter is created.
	ErrKind            = errors.New("the meter's kind, flow or level, is fixed since the meter was made: declare another meter")
	ErrUnknownOverride = errors.New("the customer has no override of this limit")
	ErrArchived        = errors.New("the customer is archived and cannot be written any more")
	// ErrBeforePeriod is returned if a test clock was set back and a period would have to end before its
	// start.
	ErrBeforePeriod = errors.New("the open billing period has not begun yet by the customer's clock, so it cannot end now")
	// ErrPrecondition is returned if If-Match names another version than the current version (412).
	ErrPrecondition = errors.New("changed in the meantime")
	// ErrExists is returned if the object exists although If-None-Match: * requires that it does not (412).
	ErrExists = errors.New("exists already")
	// ErrPreconditionRequired is returned if the object exists and the request has no If-Match (428).
	ErrPreconditionRequired = errors.New("already exists: If-Match is required")
)

// IfMatchError is an ErrPreconditionRequired with the current entity tag.
type IfMatchError struct {
	ETag string // current entity tag, unquoted
}

func (e *IfMatchError) Error() string { return ErrPreconditionRequired.Error() }

// Unwrap returns ErrPreconditionRequired.
func (e *IfMatchError) Unwrap() error { return ErrPreconditionRequired }

// NoDefaultPlanError is an ErrUnknownCustomer of a node with a default plan. The error explains why the
// customer could not be created under that plan.
type NoDefaultPlanError struct {
	Plan   string
	Priced bool // the plan exists, but has prices
}

func (e *NoDefaultPlanError) Error() string {
	if e.Priced {
		return fmt.Sprintf("the default plan %s has prices, and nobody can be billed for it: write a version without prices and base price", e.Plan)
	}
	return fmt.Sprintf("there is no default plan %s: write it with PUT /v1/plans/%s", e.Plan, e.Plan)
}

// Unwrap returns ErrUnknownCustomer.
func (e *NoDefaultPlanError) Unwrap() error { return ErrUnknownCustomer }

// SuspendedError is an ErrSuspended with the suspension's reason, which the customer may read.
type SuspendedError struct{ Reason string }

func (e *SuspendedError) Error() string { return ErrSuspended.Error() }

// Unwrap returns ErrSuspended.
func (e *SuspendedError) Unwrap() error { return ErrSuspended }
