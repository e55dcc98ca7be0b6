package plans

import (
	"errors"
	"strconv"
	"time"

	"quotad/internal/quota"
)

// Sentinels that the API turns into problems. Field-level faults are quota.FieldErrors.
var (
	ErrUnknownCustomer = errors.New("no such customer")
	ErrUnknownMeter    = errors.New("no such meter")
	ErrUnknownPlan     = errors.New("no such plan")
	ErrUnknownVersion  = errors.New("the plan has no such version")
	ErrUnknownKey      = errors.New("no such key")
	ErrNotInPlan       = errors.New("the customer's plan does not include this meter")
	ErrArchived        = errors.New("the customer is archived")
	// ErrPrecondition: If-Match names another version than the present one (412).
	ErrPrecondition = errors.New("changed in the meantime")
	// ErrPreconditionRequired: the thing exists and no If-Match was given (428).
	ErrPreconditionRequired = errors.New("already exists: If-Match is required")
)

// Precondition is what the request's If-Match said.
type Precondition struct {
	Given bool
	Any   bool   // If-Match: *
	ETag  string // unquoted
}

// check holds an If-Match against the thing as it is: tag is its present entity tag.
func (p Precondition) check(exists bool, tag string) error {
	switch {
	case exists && !p.Given:
		return ErrPreconditionRequired
	case p.Given && !exists, p.Given && !p.Any && p.ETag != tag:
		return ErrPrecondition
	}
	return nil
}

func etag(n int64) string { return strconv.FormatInt(n, 10) }

// PutMeterInput is a meter as an admin writes it (PUT /v1/meters/{key}).
type PutMeterInput struct {
	Unit string // what one unit is called, such as "request"; 1 to 200 characters
	Name string // for people; may be empty
}

// Meter is what is counted, in a unit.
type Meter struct {
	Key  string
	Name string
	Unit string
	ID   int32
}

// PlanInput is a plan as an admin writes it (PUT /v1/plans/{key}), defaults not yet
// filled in; numbers are already integers.
type PlanInput struct {
	Name           string
	Currency       string // ISO 4217
	Interval       string // day week month year
	IntervalCount  int    // 1 …
	BasePriceMinor int64  // minor units of Currency
	Meters         []string
	Features       map[string]any // bool, json number as int64 or decimal string, or string
	Limits         []LimitInput
	Prices         []PriceInput
	ApplyTo        string // all (default), new
}

// LimitInput is one limit of a plan: the arithmetic's Spec, and its meter.
type LimitInput struct {
	Meter string
	quota.Spec
}

// PriceInput is one price of a plan. Unit prices are decimal strings in major units.
type PriceInput struct {
	Meter        string
	Model        string // per_unit package graduated volume
	UnitPrice    *string
	PackageSize  *int64
	PackagePrice *string
	Tiers        []Tier
	Included     int64
}

// Tier is one step of a graduated or volume price; UpTo nil is the last one.
type Tier struct {
	UpTo      *int64
	UnitPrice string
	FlatPrice *string
}

// Plan is one immutable version of a plan, defaults filled in.
type Plan struct {
	Key       string
	Version   int
	CreatedAt time.Time
	PlanInput
}

// ETag is the plan version's entity tag, unquoted.
func (p *Plan) ETag() string { return etag(int64(p.Version)) }

// CustomerInput is a customer as an admin writes it (PUT /v1/customers/{key}).
type CustomerInput struct {
	Name          string
	Plan          string
	PlanVersion   *int   // pins this version
	Timezone      string // IANA name
	BillingAnchor string // wall clock in Timezone, 2026-01-31T00:00:00; empty: the creation's
	Metadata      map[string]string
}

// Customer is who is limited and billed.
type Customer struct {
	Key string
	ID  int64
	CustomerInput
	EffectiveVersion int // the plan version whose limits count now
	CreatedAt        time.Time
	ArchivedAt       *time.Time
	Change           int64
}

// ETag is the customer's entity tag, unquoted.
func (c *Customer) ETag() string { return etag(c.Change) }

// Scope says what a key may do.
type Scope string

// The scopes. Read may do every GET of a customer, plan or meter.
const (
	ScopeAdmin   Scope = "admin"
	ScopeBackend Scope = "backend"
	ScopeRead    Scope = "read"
)

// Key is an API key without its secret, of which only the SHA-256 is kept.
type Key struct {
	ID        string
	Name      string
	Scope     Scope
	CreatedAt time.Time
	ExpiresAt *time.Time
}

// Page bounds a list: Limit 1 … 1000 items after Cursor (empty: from the start).
type Page struct {
	Limit  int
	Cursor string
}

// List is one page; Next is empty at the end.
type List[T any] struct {
	Items []T
	Next  string
}
