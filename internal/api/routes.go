package api

import (
	"slices"

	"quotad/internal/api/serve"
)

// routes is every route of the API. Those of a tag are in the order of the documentation.
func (s *Server) routes() []serve.Route {
	return slices.Concat(
		s.hitRoutes(), s.usage.Routes(), s.reservationRoutes(), s.admin.Routes(), s.usage.ListRoutes(), s.drafts.Routes(),
		s.billing.Routes(), s.imports.Routes(),
		s.auditRoutes(), s.reconcileRoutes(), []serve.Route{s.overviewRoute()}, s.serviceRoutes(),
	)
}
