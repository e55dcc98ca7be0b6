// Package admin serves the resources that admins write: meters, plans, customers, overrides, keys, test clocks,
// and links into the portal.
//
// It reads requests and calls the store. It must never contain rules about limits or plans.
package admin

import (
	"slices"

	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
)

// Room serves the routes of the resources that admins write.
type Room struct {
	*serve.Server
	Portal Portal
}

// refused lists the problems of resources that are missing or in conflict with the request.
var refused = []*problem.Kind{problem.KindNotFound, problem.KindConflict}

// Routes returns the routes of the room. A nil Room only describes the routes.
func (s *Room) Routes() []serve.Route {
	return slices.Concat(s.meterRoutes(), s.planRoutes(), s.customerRoutes(), s.scheduledRoutes(), s.planRequestRoutes(), s.overrideRoutes(),
		s.clockRoutes(), s.keyRoutes(), s.portalRoutes())
}
