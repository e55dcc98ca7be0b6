package plans

import (
	"time"

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
// it is also the plan as it is stored and shown. Stored plans are never rewritten. So fields
// may be added, but never renamed or given another meaning.
type PlanInput struct {
	Name           string         `json:"name" minLength:"1" maxLength:"200"`
	Currency       string         `json:"currency" pattern:"^[A-Z]{3}$" doc:"Currency code, ISO 4217. All versions of a plan have one currency."`
	Interval       string         `json:"interval" enum:"day,week,month,year" doc:"The billing period is interval_count of these intervals."`
	IntervalCount  int            `json:"interval_count" required:"false" minimum:"1" default:"1"`
	BasePriceMinor int64          `json:"base_price_minor" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"Price of a billing period, in minor units of the currency."`
	BaseIn         string         `json:"base_in" required:"false" enum:"arrears,advance" default:"arrears" doc:"When the base price is due:\n- arrears (default): after the billing period.\n- advance: before it."`
	MinimumMinor   int64          `json:"minimum_minor" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"The least that the base and the usage of a billing period cost together, in minor units."`
	Meters         []string       `json:"meters" required:"false" doc:"Meters that are admitted and counted, beside those that limits and prices name."`
	Features       map[string]any `json:"features" required:"false" doc:"What the application may ask for. Values are booleans, numbers and strings. quotad does nothing with them."`
	Limits         []Limit        `json:"limits" required:"false" maxItems:"100" doc:"At most 100 limits, and at most 20 on one meter."`
	Prices         []Price        `json:"prices" required:"false"`
	ApplyTo        string         `json:"apply_to" required:"false" enum:"all,new" default:"all" doc:"Which customers a new version counts for:\n- all (default): customers of the plan who are not pinned to a version.\n- new: customers who join later."`
}

// The values of PlanInput.BaseIn: when the base price is due, after the period or before it.
const (
	InArrears = "arrears"
	InAdvance = "advance"
)

// Limit is one limit of a plan: the arithmetic's Spec, and its meter.
type Limit struct {
	Meter string `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$"`
	model.Spec
}

// Price is one price of a plan. Unit prices are decimal strings in major units.
type Price struct {
	Meter        string  `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$"`
	Model        string  `json:"model" enum:"per_unit,package,graduated,volume"`
	UnitPrice    *string `json:"unit_price,omitempty" doc:"A decimal number in major units."`
	PackageSize  *int64  `json:"package_size,omitempty" minimum:"1"`
	PackagePrice *string `json:"package_price,omitempty" doc:"A decimal number in major units."`
	Tiers        []Tier  `json:"tiers,omitempty"`
	Included     int64   `json:"included" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"Units that are free. They come off first."`
	MinimumMinor *int64  `json:"minimum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The least that the meter costs in a billing period, in minor units."`
	MaximumMinor *int64  `json:"maximum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The most that the meter costs in a billing period, in minor units."`
}

// Tier is one step of a graduated or volume price; UpTo nil is the last one.
type Tier struct {
	UpTo      *int64  `json:"up_to" required:"false" minimum:"1" doc:"The last unit of the tier. Null for the last tier."`
	UnitPrice string  `json:"unit_price" doc:"A decimal number in major units."`
	FlatPrice *string `json:"flat_price,omitempty" doc:"A decimal number in major units."`
}

// Plan is one immutable version of a plan, defaults filled in.
type Plan struct {
	Key       string    `json:"key"`
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"created_at"`
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
