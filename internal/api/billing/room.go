// Package billing is how customers are billed: accounts, sellers, prices of a customer's own,
// invoices, charges, credits, and adjustments of usage.
//
// It reads requests and asks accounts and invoices. It must never compute an amount.
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
	// Limits are the limits of a customer as a transaction sees them, as the quota answer has them. over
	// says why nobody waits for the answer any more, or nil.
	Limits func(ctx context.Context, tx pgx.Tx, customer string, over func() error) (json.MarshalerTo, error)
	// Left is how many units of each meter a customer may still use before an instant, µs, as a transaction sees its limits.
	Left func(ctx context.Context, tx pgx.Tx, customer string, end int64) (map[string]int64, error)
}

// refused are the problems of what is missing, or cannot be as it is asked for. archived are those of
// what may also belong to a customer that is archived.
var (
	refused  = []*problem.Kind{problem.KindNotFound, problem.KindConflict}
	archived = []*problem.Kind{problem.KindNotFound, problem.KindConflict, problem.KindArchived}
)

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	return slices.Concat(s.adjustmentRoutes(), s.invoiceRoutes(), s.paperRoutes(), s.accountRoutes(), s.ownPriceRoutes(), s.sellerRoutes(), s.capRoutes(),
		s.previewRoutes())
}
