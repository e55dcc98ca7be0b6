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
	Kind string // KindFlow or KindLevel; empty: as the meter is, KindFlow of a new one
}

// Meter is what is counted, in a unit.
type Meter struct {
	Key  string
	Name string
	Unit string
	ID   int32 // model.IsLevel says its kind
}

// Kind is flow, of a meter that counts what passes, or level, of one that counts what is held.
func (m *Meter) Kind() string {
	if model.IsLevel(m.ID) {
		return KindLevel
	}
	return KindFlow
}

// The kinds of meters.
const (
	KindFlow  = "flow"
	KindLevel = "level"
)

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
	Change        string         // ChangeNow or ChangeLimitsNow of a change; empty: it was not said
}

// When a change of plan counts.
const (
	ChangeNow       = "now"        // the running billing period ends now
	ChangeLimitsNow = "limits_now" // limits at once, prices from the next billing period on
)

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
	Suspension       *Suspension      // nil: it is not suspended
	Scheduled        *ScheduledChange // nil: no other plan waits
	Due              bool             // its plan is that of a scheduled change which is not written yet
	Change           int64
	Former           []FormerPeriods // billing periods, the oldest first
	Cuts             []int64         // boundaries of billing periods beside those of the anchor, µs, ascending
}

// ETag is the customer's entity tag, unquoted.
func (c *Customer) ETag() string { return etag(c.Change) }

// Suspension is the time in which a customer's hits and reservations are refused.
type Suspension struct {
	Reason string    // why, for people, the customer too; 1 to 200 characters
	At     time.Time // since when, by PostgreSQL's clock
}

// ScheduledChange is another plan that a customer will be on.
type ScheduledChange struct {
	Plan        string    // key
	PlanVersion int       // that would be in force now
	At          time.Time // from when on its limits and prices count, by the customer's clock
}

// PlanRequest is another plan that a customer asked for.
type PlanRequest struct {
	Plan string    // key
	At   time.Time // when the request was last told, by the customer's clock
}

// What a scheduled change waits for: the end of the running billing period, or that of all the periods
// that its base price is for.
const (
	UntilPeriodEnd = "period_end"
	UntilBaseEnd   = "base_end"
)

// How a customer came to be on its terms, besides ChangeNow, ChangeLimitsNow, UntilPeriodEnd and
// UntilBaseEnd.
const (
	TermsNamed  = "named"  // it was made, or was anonymous until then
	TermsResume = "resume" // its billing began again
)

// WasScheduled reports whether terms are those of a scheduled change.
func WasScheduled(how string) bool { return how == UntilPeriodEnd || how == UntilBaseEnd }

// LeastNotice is how long before its instant a change is scheduled at the latest, µs: all nodes have to
// hear of it.
const LeastNotice = int64(2e6)

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
