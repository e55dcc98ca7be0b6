// Package usage is what a customer has left, used, holds and was refused.
//
// It only reads. Requests that charge are in package hits.
package usage

import "quotad/internal/api/serve"

// Room serves the routes of what a customer uses.
type Room struct{ *serve.Server }

// ListRoutes are those of what a customer holds and was refused. A nil Room describes them.
func (s *Room) ListRoutes() []serve.Route {
	return append(serve.Tagged("Backends", s.openReservationsRoute()), serve.Tagged("Customers", s.refusalRoute())...)
}
