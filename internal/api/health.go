package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
)

func (s *Server) livez(*serve.Call) (serve.Answer, error) {
	return serve.Answer{Status: http.StatusOK, Body: client.Health{Status: "ok"}}, nil
}

// readyz says whether to send requests to this node. A degraded node answers 200, too: in an
// outage it admits the hits whose limits allow that.
func (s *Server) readyz(*serve.Call) (serve.Answer, error) {
	switch state, reason := s.Ready(); state {
	case serve.StateReady, serve.StateDegraded:
		return serve.Answer{Status: http.StatusOK, Body: client.Health{Status: string(state), Reason: reason}}, nil
	case serve.StateStopping:
		return serve.Answer{}, &problem.Fault{Kind: problem.KindNotReady, Detail: "this node is stopping"}
	default:
		return serve.Answer{}, &problem.Fault{Kind: problem.KindNotReady, Detail: "the database has not been reached yet"}
	}
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request, _ serve.Params) int {
	s.MetricsHandler().ServeHTTP(w, r)
	return http.StatusOK
}

// MetricsHandler serves the registry in Prometheus' format, for a listener of its own.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{})
}
