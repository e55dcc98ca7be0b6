package service

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
)

func (s *Room) livez(*serve.Call) (client.Health, error) { return client.Health{Status: "ok"}, nil }

// readyz reports whether this node should receive requests. A degraded node responds with 200, too, because in
// an outage it admits the hits whose limits allow that.
func (s *Room) readyz(*serve.Call) (is client.Health, err error) {
	switch state, reason := s.Ready(); state {
	case serve.StateReady, serve.StateDegraded:
		return client.Health{Status: string(state), Reason: reason}, nil
	case serve.StateStopping:
		return is, &problem.Fault{Kind: problem.KindNotReady, Detail: "this node is stopping"}
	default:
		return is, &problem.Fault{Kind: problem.KindNotReady, Detail: "the database has not been reached yet"}
	}
}

func (s *Room) serveMetrics(w http.ResponseWriter, r *http.Request, _ serve.Params) int {
	s.MetricsHandler().ServeHTTP(w, r)
	return http.StatusOK
}

// MetricsHandler returns a handler that serves the registry in Prometheus' format, for a separate listener.
func (s *Room) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{})
}

func (s *Room) serviceRoutes() []serve.Route {
	return serve.Tagged("Service",
		s.overviewRoute(),
		serve.Get(apidoc.Anyone, "/livez", "service.livez", "Whether the process runs", s.livez, serve.Same),
		serve.Get(apidoc.Anyone, "/readyz", "service.readyz", "Whether to send requests here", s.readyz, serve.Same).Fails(problem.KindNotReady),
		serve.Route{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/", ID: "service.root", Summary: "Go to the documentation",
			Status: []int{http.StatusFound}, Sends: map[int][]string{http.StatusFound: {"Location"}},
		}, Raw: s.ToDocs},
		serve.Route{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/metrics", Access: apidoc.Readers, ID: "service.metrics",
			Summary: "Metrics for Prometheus", Media: "text/plain", Status: serve.OK200,
		}, Raw: s.serveMetrics},
		serve.Route{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/openapi.json", ID: "service.openapi", Summary: "This document",
			Media: "application/json", Status: serve.OK200,
		}, Raw: s.serveOpenAPI},
		serve.Route{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/docs", ID: "service.docs", Summary: "This document as a page", Media: "text/html",
			Status: serve.OK200,
		}, Raw: s.serveDocs},
		serve.Route{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/problems/{name}", ID: "service.problem", Summary: "What a problem type means",
			Media: "text/html", Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound},
		}, Raw: s.serveProblem},
	)
}
