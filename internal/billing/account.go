package billing

import (
	"slices"

	"quotad/client"
	"quotad/internal/plans"
)

// Account is how a customer is billed. Every customer that is not anonymous has one.
type Account struct {
	Customer       int64
	Currency       string // "" until the first period opens
	StartsAt       int64
	StartsSetAt    int64 // when StartsAt was written last
	TrialEndsAt    *int64
	EndsAt         *int64
	EndsWithPeriod bool   // EndsAt was asked for as the end of the period
	AfterEnd       string // what becomes of hits after EndsAt: Block or Free

	// Billing ended at BreakFrom and began again at BreakTo, the last time that it did.
	BreakFrom, BreakTo *int64

	// The period that began at KnownFrom was known to end at KnownEnd. EndsAt was written since,
	// before the period was open.
	KnownFrom, KnownEnd *int64

	Seller         string
	Buyer          Buyer
	Taxes          []TaxRate
	DueDays        int
	OrderReference string   // of the buyer
	Notes          []string // lines on each paper

	Written bool // by an admin, ever: then a write needs If-Match
	Change  int64
}

// The values of Account.AfterEnd.
const (
	Block = "block" // hits and reservations are refused
	Free  = "free"  // usage goes on and is not billed
)

// What an account and the API say alike.
type (
	// Buyer is who invoices are addressed to.
	Buyer = client.Buyer
	// TaxRate is one tax of an account.
	TaxRate = client.TaxRate
)

// Seller is who sends invoices, as papers name it. Its finalized invoices are numbered without a gap.
type Seller struct {
	Key          string   `json:"key"`
	Name         string   `json:"name"`
	Address      []string `json:"address"`
	Country      string   `json:"country,omitempty"`
	TaxID        string   `json:"tax_id,omitempty"`
	Registration string   `json:"registration,omitempty"`
	Email        string   `json:"email,omitempty"`
	Payment      []string `json:"payment,omitempty"` // lines: how to pay
	Footer       []string `json:"footer,omitempty"`  // lines
	Prefix       string   `json:"prefix"`            // of the number, in an invoice
}

// Period is a billing period [Start, End), and what it is priced by.
type Period struct {
	Chain, N           int   // the N-th of its chain, from 0; another chain begins when billing begins again. Below 0: see Extra
	Start, End         int64 // µs
	FullStart, FullEnd int64 // the whole period that it is cut from
	KnownEnd           int64 // the end that was known when it opened
	Trial              bool  // all of it is rated 0
	PlanID             int32
	Version            int
	Prices             map[string]plans.Price // the customer's own, by meter
	Base               *Base                  // the base price that the period lies in; nil: one of its own
}

// Base is a base price in advance that is for more billing periods than one, as one of them has it. Its
// whole time is [FullStart, FullEnd). It is stored with the period. Instants are µs.
type Base struct {
	PlanID    int32 `json:"plan_id"`
	Version   int   `json:"version"` // whose base price it is; the period may be priced by a newer one
	FullStart int64 `json:"full_start"`
	FullEnd   int64 `json:"full_end"`

	N     int   `json:"n"`     // of the chain: the period with whose start it is charged
	Start int64 `json:"start"` // of that period
	To    int64 `json:"to"`    // up to where it was charged when this period began, as its end was known
	// End is where it ends, as was known when this period ended: then if it ends there, too. It is 0 of
	// an open period.
	End int64 `json:"end"`
	// Late: a change at the start of period N began it. So no earlier invoice has charged it. Over is the
	// base price that the change ended, in period N itself: the period's own invoice gives the rest back.
	Late bool  `json:"late,omitempty"`
	Over *Base `json:"over,omitempty"`
}

// Extra reports whether this is no period, but the end of a chain, of which an extra invoice is. Nothing of
// it is used or priced, and it is not stored.
func (p *Period) Extra() bool { return p.N < 0 }

// BaseOf is the base price that the period lies in. End is where it ends as far as is known: of one of
// its own, with the period.
func (p *Period) BaseOf() Base {
	if p.Base != nil {
		return *p.Base
	}
	return Base{
		PlanID: p.PlanID, Version: p.Version, FullStart: p.FullStart, FullEnd: p.FullEnd,
		N: p.N, Start: p.Start, To: p.KnownEnd, End: p.End,
	}
}

// BaseGoesOn reports whether the base price goes on after the period, which has ended.
func (p *Period) BaseGoesOn() bool { return p.Base != nil && p.Base.End > p.End }

// Cuts appends the boundaries of the account's periods but its start, and sorts them.
func (a *Account) Cuts(cuts []int64) []int64 {
	for _, at := range []*int64{a.TrialEndsAt, a.EndsAt, a.BreakFrom, a.BreakTo} {
		if at != nil {
			cuts = append(cuts, *at)
		}
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}
