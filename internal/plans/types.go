package plans

import (
	"time"

	"quotad/client"
	"quotad/internal/quota/model"
)

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

// PlanInput is a plan as an admin writes it (PUT /v1/plans/{key}). With its defaults filled in
// it is also the plan as it is stored and shown.
type PlanInput client.PlanInput

// The values of PlanInput.BaseIn: when the base price is due, after the period or before it.
const (
	InArrears = "arrears"
	InAdvance = "advance"
)

// What a plan holds is stored, shown and written alike.
type (
	// Limit is one limit of a plan.
	Limit = client.Limit
	// Price is one price of a plan.
	Price = client.Price
	// Tier is one step of a graduated or volume price.
	Tier = client.Tier
	// PlanVersion names a version of a plan.
	PlanVersion = client.PlanVersion
)

// Plan is one immutable version of a plan, defaults filled in.
type Plan struct {
	PlanVersion
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
	Features      map[string]any // over those of the plan
	TestClock     *string        // the clock it is made with; nil: PostgreSQL's time, or as it is
	EndPeriod     bool           // of a change: the running billing period ends now
}

// Customer is who is limited and billed.
type Customer struct {
	Key string
	ID  int64
	CustomerInput
	EffectiveVersion int // the plan version whose limits count now
	Clock            *model.TestClock
	Anonymous        bool // made by a hit, under the default plan, and written by nobody
	CreatedAt        time.Time
	ArchivedAt       *time.Time
	ErasedAt         *time.Time
	Change           int64
	Former           []FormerPeriods // billing periods, the oldest first
	Cuts             []int64         // boundaries of billing periods beside those of the anchor, µs, ascending
}

// ETag is the customer's entity tag, unquoted.
func (c *Customer) ETag() string { return etag(c.Change) }

// A Setting is a setting that all nodes share. The store does not interpret its value.
type Setting struct{ Name, Value string }

// MaxPage is the most items of a page.
const MaxPage = 1000

// Page bounds a list: Limit 1 … MaxPage items (0: 100) after Cursor (empty: from the start).
type Page struct {
	Limit  int
	Cursor string
}

// List is one page; Next is empty at the end.
type List[T any] struct {
	Items []T
	Next  string
}
