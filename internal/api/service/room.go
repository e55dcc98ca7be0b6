// Package service is how quotad itself is: whether it is ready, its documentation and metrics, the
// overview, whether the books agree, who changed what, and what happened.
//
// It only reads.
package service

import (
	"slices"
	"sync/atomic"

	"quotad/internal/api/serve"
	"quotad/internal/billing/reconcile"
)

// Options are what the room needs beside what all rooms share.
type Options struct {
	Reconciler    *reconcile.Reconciler // checks the books for GET /v1/reconcile
	OpenAPI, Docs func() []byte         // the document of all routes, and its page
}

// Room serves the routes of the service.
type Room struct {
	*serve.Server
	options   Options
	checked   atomic.Pointer[checked] // by GET /v1/reconcile; nil: not yet
	overviews overviews
}

// New makes a room.
func New(s *serve.Server, options Options) *Room { return &Room{Server: s, options: options} }

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	return slices.Concat(s.auditRoutes(), s.eventRoutes(), s.reconcileRoutes(), s.serviceRoutes())
}
