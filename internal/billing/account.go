package billing

import (
	"slices"

	"quotad/client"
	"quotad/internal/plans"
)

// Account defines how a customer is billed. Every customer that is not anonymous has an account.
type Account struct {
	Customer       int64
	Currency       string // "" until the first period opens
	StartsAt       int64
	StartsSetAt    int64 // the instant at which StartsAt was last written
	TrialEndsAt    *int64
	EndsAt         *int64
	EndsWithPeriod bool   // EndsAt was requested as the end of the period
	AfterEnd       string // the treatment of hits after EndsAt: Block or Free

	// BreakFrom and BreakTo bound the latest break in billing: billing ended at BreakFrom and began again at
	// BreakTo.
	BreakFrom, BreakTo *int64

	// KnownEnd is the end that the period beginning at KnownFrom had before EndsAt was written. EndsAt was
	// written before that period was open.
	KnownFrom, KnownEnd *int64

	Seller         string
	Buyer          Buyer
	Taxes          []TaxRate
	DueDays        int
	OrderReference string   // the buyer's order reference
	Notes          []string // lines printed on each document

	Written bool // an admin has written the account at least once, so a write needs If-Match
	Change  int64
}

// The values of Account.AfterEnd.
const (
	Block = "block" // hits and reservations are refused
	Free  = "free"  // usage goes on and is not billed
)

// Types that accounts share with the API.
type (
	// Buyer is the addressee of invoices.
	Buyer = client.Buyer
	// TaxRate is one tax of an account.
	TaxRate = client.TaxRate
)

// Seller is the issuer of invoices, as documents show it. The seller's finalized invoices are numbered
// without a gap.
type Seller struct {
	Key          string   `json:"key"`
	Name         string   `json:"name"`
	Address      []string `json:"address"`
	Country      string   `json:"country,omitempty"`
	TaxID        string   `json:"tax_id,omitempty"`
	Registration string   `json:"registration,omitempty"`
	Email        string   `json:"email,omitempty"`
	Payment      []string `json:"payment,omitempty"` // payment instructions, by line
	Footer       []string `json:"footer,omitempty"`  // lines
	Prefix       string   `json:"prefix"`            // the start of each invoice number
}

// Period is a billing period [Start, End) with the plan version and the prices that bill it.
type Period struct {
	Chain, N           int   // N-th period of the chain, from 0; a restart of billing begins a chain. If N < 0, see Extra
	Start, End         int64 // µs
	FullStart, FullEnd int64 // the whole period from which this period is cut
	KnownEnd           int64 // the end that was known when the period opened
	Trial              bool  // all usage of the period is rated 0
	PlanID             int32
	Version            int
	Prices             map[string]plans.Price // the customer's own prices, by meter
	Base               *Base                  // the base price that covers the period; nil if it is the period's own
}

// Base is a base price that is charged in advance for several billing periods. Each of these periods stores
// its own copy. The base price covers [FullStart, FullEnd). Instants are µs.
type Base struct {
	PlanID    int32 `json:"plan_id"`
	Version   int   `json:"version"` // of the base price; the period may have a newer version
	FullStart int64 `json:"full_start"`
	FullEnd   int64 `json:"full_end"`

	N     int   `json:"n"`     // the number in the chain of the period at whose start the base is charged
	Start int64 `json:"start"` // the start of period N
	To    int64 `json:"to"`    // the end of the charged time, as known when this period began
	// End is the end of the base price as known when this period ended. If the base price ends with the
	// period, End is the period's end. End is 0 in an open period.
	End int64 `json:"end"`
	// Late reports that a change at the start of period N began this base price, so no earlier invoice has
	// charged it. Over is the base price that the change ended in period N itself. The invoice of period N
	// gives the unused rest of Over back.
	Late bool  `json:"late,omitempty"`
	Over *Base `json:"over,omitempty"`
}

// Extra reports whether p is not a real period but the end of a chain, for an extra invoice. Such a p has no
// usage and no prices, and is not stored.
func (p *Period) Extra() bool { return p.N < 0 }

// BaseOf returns the base price that covers the period. End is the end of the base price as far as it is
// known. A base price of the period's own ends with the period.
func (p *Period) BaseOf() Base {
	if p.Base != nil {
		return *p.Base
	}
	return Base{
		PlanID: p.PlanID, Version: p.Version, FullStart: p.FullStart, FullEnd: p.FullEnd,
		N: p.N, Start: p.Start, To: p.KnownEnd, End: p.End,
	}
}

// BaseGoesOn reports whether the base price continues after the period, which has ended.
func (p *Period) BaseGoesOn() bool { return p.Base != nil && p.Base.End > p.End }

// Cuts appends the instants at which the account cuts its periods, except StartsAt, and sorts the result: the
// ends of the trial, of billing and of breaks.
func (a *Account) Cuts(cuts []int64) []int64 {
	for _, at := range []*int64{a.TrialEndsAt, a.EndsAt, a.BreakFrom, a.BreakTo} {
		if at != nil {
			cuts = append(cuts, *at)
		}
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}
