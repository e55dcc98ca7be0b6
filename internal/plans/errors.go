package plans

import (
	"errors"
	"fmt"
)

// Sentinels that the API turns into problems. Field-level faults are model.FieldErrors.
var (
	ErrUnknownCustomer = errors.New("no such customer")
	ErrUnknownMeter    = errors.New("no such meter")
	ErrUnknownPlan     = errors.New("no such plan")
	ErrUnknownVersion  = errors.New("the plan has no such version")
	ErrUnknownDraft    = errors.New("the plan has no draft")
	ErrUnknownKey      = errors.New("no such key")
	ErrUnknownClock    = errors.New("no such test clock")
	ErrNotInPlan       = errors.New("the customer's plan does not include this meter")
	// ErrSuspended: from the suspension of a customer to its end its hits and reservations are refused.
	ErrSuspended = errors.New("the customer is suspended; nothing was charged")
	// ErrEnded: hits and reservations of a customer are refused from ends_at of its account on.
	ErrEnded = errors.New("the customer's subscription has ended; nothing was charged")
	// ErrNotSuspended: there is nothing to be lifted.
	ErrNotSuspended = errors.New("the customer is not suspended")
	// ErrNoScheduled: there is nothing to be taken away.
	ErrNoScheduled = errors.New("the customer has no scheduled change")
	// ErrNotSchedulable: a change of plan has no end of a period to wait for.
	ErrNotSchedulable = errors.New("the change cannot be scheduled")
	ErrNoOpenPeriod   = fmt.Errorf("%w: no billing period of the customer runs now", ErrNotSchedulable)
	ErrEndsFirst      = fmt.Errorf("%w: the customer's billing ends by then: move ends_at first", ErrNotSchedulable)
	ErrTooSoon        = fmt.Errorf("%w: the period ends in less than 2 seconds: try again after that", ErrNotSchedulable)
	ErrUnknownLimit   = errors.New("the customer's plan has no such limit")
	// ErrLinkOver: a link into the portal was used, is too old, or never was (410).
	ErrLinkOver = errors.New("the link was used already or is over")
	// ErrSessionOver: a session of the pages has ended, since it was found.
	ErrSessionOver = errors.New("the session is over")
	// ErrKind: the kind of a meter is fixed when the meter is made.
	ErrKind            = errors.New("the meter's kind, flow or level, is fixed since the meter was made: declare another meter")
	ErrUnknownOverride = errors.New("the customer has no override of this limit")
	ErrArchived        = errors.New("the customer is archived and cannot be written any more")
	// ErrBeforePeriod: a test clock was set back, and nothing can end before it began.
	ErrBeforePeriod = errors.New("the open billing period has not begun yet by the customer's clock, so it cannot end now")
	// ErrPrecondition: If-Match names another version than the present one (412).
	ErrPrecondition = errors.New("changed in the meantime")
	// ErrExists: the thing exists, and If-None-Match: * wants that it does not (412).
	ErrExists = errors.New("exists already")
	// ErrPreconditionRequired: the thing exists and no If-Match was given (428).
	ErrPreconditionRequired = errors.New("already exists: If-Match is required")
)

// IfMatchError is an ErrPreconditionRequired with the present entity tag.
type IfMatchError struct {
	ETag string // the present one, unquoted
}

func (e *IfMatchError) Error() string { return ErrPreconditionRequired.Error() }

// Unwrap is ErrPreconditionRequired.
func (e *IfMatchError) Unwrap() error { return ErrPreconditionRequired }

// NoDefaultPlanError is an ErrUnknownCustomer of a node with a default plan. It says why that
// plan could not make the customer.
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

// Unwrap is ErrUnknownCustomer.
func (e *NoDefaultPlanError) Unwrap() error { return ErrUnknownCustomer }

// SuspendedError is an ErrSuspended that has the suspension's reason, which the customer may read.
type SuspendedError struct{ Reason string }

func (e *SuspendedError) Error() string { return ErrSuspended.Error() }

// Unwrap is ErrSuspended.
func (e *SuspendedError) Unwrap() error { return ErrSuspended }
