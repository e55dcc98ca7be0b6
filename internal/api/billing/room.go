// Package billing is how customers are billed: accounts, sellers, prices of a customer's own,
// invoices, charges, credits, and adjustments of usage.
//
// It reads requests and asks accounts and invoices. It must never compute an amount.
package billing

import (
	"slices"

	"quotad/internal/api/serve"
)

// Room serves the routes of billing.
type Room struct{ *serve.Server }

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	return slices.Concat(s.adjustmentRoutes(), s.invoiceRoutes(), s.paperRoutes(), s.accountRoutes())
}
