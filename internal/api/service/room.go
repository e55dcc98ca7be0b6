// Package service serves the state of quotad itself: readiness, documentation, metrics, the overview, the check
// of the books, the audit trail, and events.
//
// It only reads.
package service

import (
	"slices"
	"sync/atomic"

	"quotad/internal/api/serve"
	"quotad/internal/billing/reconcile"
)

// Options contains the parts that this room needs beside the parts that all rooms share.
type Options struct {
	Reconciler    *reconcile.Reconciler // checks the books for GET /v1/reconcile
	OpenAPI, Docs func() []byte         // the OpenAPI document of all routes, and its page
}

// Room serves the routes of the service.
type Room struct {
	*serve.Server
	options   Options
	checked   atomic.Pointer[checked] // result of GET /v1/reconcile; nil before the first run
	overviews overviews
}

// New returns a room.
func New(s *serve.Server, options Options) *Room { return &Room{Server: s, options: options} }

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	return slices.Concat(s.auditRoutes(), s.eventRoutes(), s.reconcileRoutes(), s.serviceRoutes())
}
