package invoices

import (
	"time"

	"quotad/internal/billing/accounts"
)

// Invoices reads and writes invoices, charges and credits, and computes the invoices of periods. It is safe
// for concurrent use, and any number of nodes may use the same database.
type Invoices struct {
	accounts       *accounts.Accounts
	correctionTime int64 // µs
}

// New returns the invoices of a node. correctionTime is the time for which a draft stays a draft, and must be
// the same on all nodes.
func New(a *accounts.Accounts, correctionTime time.Duration) *Invoices {
	return &Invoices{a, correctionTime.Microseconds()}
}
