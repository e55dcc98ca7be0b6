package service

import (
	"net/http"
	"reflect"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
)

func (s *Room) livez(*serve.Call) (serve.Answer, error) {
	return serve.Answer{Status: http.StatusOK, Body: client.Health{Status: "ok"}}, nil
}

// readyz says whether to send requests to this node. A degraded node answers 200, too: in an
// outage it admits the hits whose limits allow that.
func (s *Room) readyz(*serve.Call) (serve.Answer, error) {
	switch state, reason := s.Ready(); state {
	case serve.StateReady, serve.StateDegraded:
		return serve.Answer{Status: http.StatusOK, Body: client.Health{Status: string(state), Reason: reason}}, nil
	case serve.StateStopping:
		return serve.Answer{}, &problem.Fault{Kind: problem.KindNotReady, Detail: "this node is stopping"}
	default:
		return serve.Answer{}, &problem.Fault{Kind: problem.KindNotReady, Detail: "the database has not been reached yet"}
	}
}

func (s *Room) serveMetrics(w http.ResponseWriter, r *http.Request, _ serve.Params) int {
	s.MetricsHandler().ServeHTTP(w, r)
	return http.StatusOK
}

// MetricsHandler serves the registry in Prometheus' format, for a listener of its own.
func (s *Room) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{})
}

func (s *Room) serviceRoutes() []serve.Route {
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/livez", Tag: "Service", ID: "livez", Summary: "Whether the process runs",
			Response: reflect.TypeFor[client.Health](), Status: serve.OK200,
		}, Handle: s.livez},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/readyz", Tag: "Service", ID: "readyz", Summary: "Whether to send requests here",
			Response: reflect.TypeFor[client.Health](), Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotReady},
		}, Handle: s.readyz},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/", Tag: "Service", ID: "root", Summary: "Go to the documentation",
			Status: []int{http.StatusFound},
		}, Raw: s.ToDocs},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/metrics", Access: apidoc.Readers, Tag: "Service", ID: "metrics",
			Summary: "Metrics for Prometheus", Media: "text/plain", Status: serve.OK200,
		}, Raw: s.serveMetrics},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/openapi.json", Tag: "Service", ID: "openapi", Summary: "This document",
			Media: "application/json", Status: serve.OK200,
		}, Raw: s.serveOpenAPI},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/docs", Tag: "Service", ID: "docs", Summary: "This document as a page", Media: "text/html",
			Status: serve.OK200,
		}, Raw: s.serveDocs},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/problems/{name}", Tag: "Service", ID: "problem", Summary: "What a problem type means",
			Media: "text/html", Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound},
		}, Raw: s.serveProblem},
	}
}
