// Package usage serves a customer's remaining quota, usage, open reservations and refusals.
//
// It only reads. Package hits serves requests that charge.
package usage

import "quotad/internal/api/serve"

// Room serves the routes of customers' usage.
type Room struct{ *serve.Server }

// ListRoutes returns the routes of open reservations and refusals. A nil Room only describes the routes.
func (s *Room) ListRoutes() []serve.Route {
	return append(serve.Tagged("Backends", s.openReservationsRoute()), serve.Tagged("Customers", s.refusalRoute())...)
}
