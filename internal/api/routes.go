package api

import (
	"slices"

	"quotad/internal/api/serve"
)

// routes is every route of the API. Those of a tag are in the order of the documentation.
func (s *Server) routes() []serve.Route {
	return slices.Concat(
		s.hitRoutes(), s.usageRoutes(), s.reservationRoutes(), []serve.Route{s.openReservationsRoute()},
		s.admin.Routes(), s.drafts.Routes(), []serve.Route{s.refusalRoute()},
		s.adjustmentRoutes(), s.billingRoutes(), s.paperRoutes(), s.accountRoutes(),
		s.importRoutes(),
		s.auditRoutes(), s.reconcileRoutes(), []serve.Route{s.overviewRoute()}, s.serviceRoutes(),
	)
}
