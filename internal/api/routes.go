package api

import (
	"slices"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/serve"
	"quotad/internal/events"
)

// routes returns every route of the API. Routes with the same tag are in the order of the documentation.
func (s *Server) routes() []serve.Route {
	return slices.Concat(
		s.hits.Routes(), s.usage.Routes(), s.hits.ReservationRoutes(), s.hits.LevelRoutes(), s.admin.Routes(), s.usage.ListRoutes(), s.drafts.Routes(),
		s.billing.Routes(), s.imports.Routes(), s.Service.Routes(), s.hooks.Routes(),
	)
}

// OpenAPI returns the document of /openapi.json, for `make generate`.
func OpenAPI(version string) []byte {
	return apidoc.New(serve.Operations(new(Server).routes()), events.Types, version, "").OpenAPI()
}
