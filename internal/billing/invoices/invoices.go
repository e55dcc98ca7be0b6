package invoices

import (
	"time"

	"quotad/internal/billing/accounts"
)

// Invoices reads and writes invoices, charges and credits, and says what a period comes to. It is safe
// for concurrent use, and any number of nodes may have one on the same database.
type Invoices struct {
	accounts       *accounts.Accounts
	correctionTime int64 // µs
}

// New returns the invoices of a node. correctionTime is how long a draft stays one, the same
// on all nodes.
func New(a *accounts.Accounts, correctionTime time.Duration) *Invoices {
	return &Invoices{a, correctionTime.Microseconds()}
}
