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
	EndsWithPeriod bool // EndsAt was asked for as the end of the period

	// Billing ended at BreakFrom and began again at BreakTo, the last time that it did.
	BreakFrom, BreakTo *int64

	// The period that began at KnownFrom was known to end at KnownEnd. EndsAt was written since,
	// before the period was open.
	KnownFrom, KnownEnd *int64

	Seller  string
	Buyer   Buyer
	Taxes   []TaxRate
	DueDays int
	Written bool // by an admin, ever: then a write needs If-Match
	Change  int64
}

// What an account and the API say alike.
type (
	// Buyer is who invoices are addressed to.
	Buyer = client.Buyer
	// TaxRate is one tax of an account.
	TaxRate = client.TaxRate
)

// Seller is who sends invoices. Its finalized invoices are numbered without a gap.
type Seller struct {
	Key     string   `json:"key"`
	Name    string   `json:"name"`
	Address []string `json:"address"`
	TaxID   string   `json:"tax_id,omitempty"`
	Prefix  string   `json:"prefix"`
}

// Period is a billing period [Start, End), and what it is priced by.
type Period struct {
	Chain, N           int   // the N-th of its chain, from 0; another chain begins when billing begins again
	Start, End         int64 // µs
	FullStart, FullEnd int64 // the whole period that it is cut from
	KnownEnd           int64 // the end that was known when it opened
	Trial              bool  // all of it is rated 0
	PlanID             int32
	Version            int
	Prices             map[string]plans.Price // the customer's own, by meter
}

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
