// Package billing serves the billing of customers: accounts, sellers, prices of a customer's own, invoices,
// charges, credits, and adjustments of usage.
//
// It reads requests and calls accounts and invoices. It must never compute an amount.
package billing

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
)

// Room serves the routes of billing.
type Room struct {
	*serve.Server
	// Limits returns the limits of a customer as a transaction sees them, in the form of the quota response.
	// over returns the reason why nobody waits for the response any more, or nil.
	Limits func(ctx context.Context, tx pgx.Tx, customer string, over func() error) (json.MarshalerTo, error)
	// Left returns, by meter, the units that a customer may still use before an instant, µs, under the limits
	// that a transaction sees.
	Left func(ctx context.Context, tx pgx.Tx, customer string, end int64) (map[string]int64, error)
}

// refused lists the problems of resources that are missing or in conflict with the request. archived lists the
// problems of resources that may also belong to an archived customer.
var (
	refused  = []*problem.Kind{problem.KindNotFound, problem.KindConflict}
	archived = []*problem.Kind{problem.KindNotFound, problem.KindConflict, problem.KindArchived}
)

// Routes returns the routes of the room. A nil Room only describes the routes.
func (s *Room) Routes() []serve.Route {
	return slices.Concat(s.adjustmentRoutes(), s.invoiceRoutes(), s.paperRoutes(), s.accountRoutes(), s.ownPriceRoutes(), s.sellerRoutes(), s.capRoutes(),
		s.previewRoutes())
}
