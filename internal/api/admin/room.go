// Package admin is what admins write: meters, plans, customers, overrides, keys, test clocks, and
// links into the portal.
//
// It reads requests and asks the store. It must never hold rules about limits or plans.
package admin

import (
	"slices"

	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
)

// Room serves the routes of what admins write.
type Room struct {
	*serve.Server
	Portal Portal
}

// refused are the problems of what is missing, or cannot be as it is asked for.
var refused = []*problem.Kind{problem.KindNotFound, problem.KindConflict}

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	return slices.Concat(s.meterRoutes(), s.planRoutes(), s.customerRoutes(), s.scheduledRoutes(), s.planRequestRoutes(), s.overrideRoutes(),
		s.clockRoutes(), s.keyRoutes(), s.portalRoutes())
}
