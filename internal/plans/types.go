package plans

import (
	"time"

	"quotad/client"
	"quotad/internal/quota/model"
)

// PutMeterInput is a meter as an admin writes it (PUT /v1/meters/{key}).
type PutMeterInput struct {
	Unit string // name of one unit, such as "request"; 1 to 200 characters
	Name string // name for people; may be empty
	Kind string // KindFlow or KindLevel; empty keeps the meter's kind, and means KindFlow for a new meter
}

// Meter is a quantity that is counted in a unit.
type Meter struct {
	Key  string
	Name string
	Unit string
	ID   int32 // encodes the meter's kind, see model.IsLevel
}

// Kind returns KindFlow if the meter counts units that pass, or KindLevel if it counts units that are
// held.
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

// PlanInput is a plan as an admin writes it (PUT /v1/plans/{key}). With its defaults filled in, it is
// also the plan in its stored and shown form.
type PlanInput client.PlanInput

// The values of PlanInput.BaseIn. The base price is due after the period or before it.
const (
	InArrears = "arrears"
	InAdvance = "advance"
)

// The members of a plan, which have the same form when they are stored, shown and written.
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

// Plan is one immutable version of a plan with its defaults filled in.
type Plan struct {
	PlanVersion
	PlanInput
}

// ETag returns the plan version's entity tag, unquoted.
func (p *Plan) ETag() string { return etag(int64(p.Version)) }

// CustomerInput is a customer as an admin writes it (PUT /v1/customers/{key}).
type CustomerInput struct {
	Name          string
	Plan          string
	PlanVersion   *int   // the customer is pinned to this version
	Timezone      string // IANA name
	BillingAnchor string // wall clock in Timezone, such as 2026-01-31T00:00:00; empty means the time of creation
	Metadata      map[string]string
	Features      map[string]any // merged over the features of the plan
	TestClock     *string        // clock of a new customer; nil means PostgreSQL's time, or an unchanged clock
	Change        string         // ChangeNow or ChangeLimitsNow for a change of plan; empty if the request has no such member
}

// The instants from which a change of plan applies.
const (
	ChangeNow       = "now"        // the running billing period ends now
	ChangeLimitsNow = "limits_now" // limits apply at once, prices from the next billing period on
)

// Customer is a party that is limited and billed.
type Customer struct {
	Key string
	ID  int64
	CustomerInput
	EffectiveVersion int // plan version whose limits apply now
	Clock            *model.TestClock
	Anonymous        bool // created by a hit under the default plan, and never written since
	CreatedAt        time.Time
	ArchivedAt       *time.Time
	ErasedAt         *time.Time
	Suspension       *Suspension      // nil if the customer is not suspended
	Scheduled        *ScheduledChange // nil if no change of plan is pending
	Due              bool             // a scheduled change applies already but has not been written yet
	Change           int64
	Former           []FormerPeriods // former rules of billing periods, the oldest first
	Cuts             []int64         // boundaries of billing periods in addition to the anchor's, µs, ascending
}

// ETag returns the customer's entity tag, unquoted.
func (c *Customer) ETag() string { return etag(c.Change) }

// Suspension is a state in which a customer's hits and reservations are refused.
type Suspension struct {
	Reason string    // explanation for people, including the customer; 1 to 200 characters
	At     time.Time // start of the suspension, by PostgreSQL's clock
}

// ScheduledChange is a pending change of a customer to another plan.
type ScheduledChange struct {
	Plan        string    // key of the plan
	PlanVersion int       // version that would be in force now
	At          time.Time // instant from which the plan's limits and prices apply, by the customer's clock
}

// PlanRequest is a customer's request for another plan.
type PlanRequest struct {
	Plan string    // key of the plan
	At   time.Time // instant of the latest request, by the customer's clock
}

// The instants for which a change can be scheduled: the end of the running billing period, or the end of
// all periods that the running base price covers.
const (
	UntilPeriodEnd = "period_end"
	UntilBaseEnd   = "base_end"
)

// The origins of a customer's terms, in addition to ChangeNow, ChangeLimitsNow, UntilPeriodEnd and
// UntilBaseEnd.
const (
	TermsNamed  = "named"  // the customer was created, or was anonymous until then
	TermsResume = "resume" // the customer's billing resumed
)

// WasScheduled reports whether the terms come from a scheduled change.
func WasScheduled(how string) bool { return how == UntilPeriodEnd || how == UntilBaseEnd }

// LeastNotice is the least time between the scheduling of a change and its instant, µs. All nodes must
// learn of the change in that time.
const LeastNotice = int64(2e6)

// A Setting is a setting that all nodes share. The store does not interpret its value.
type Setting struct{ Name, Value string }

// MaxPage is the greatest number of items on a page.
const MaxPage = 1000

// Page selects a part of a list: Limit items (1 to MaxPage; 0 means 100) after Cursor (empty means the
// start).
type Page struct {
	Limit  int
	Cursor string
}

// List is one page of a list. Next is empty on the last page.
type List[T any] struct {
	Items []T
	Next  string
}
