package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotad/client"
	"quotad/internal/api/problem"
)

func (s *Server) livez(*call) (answer, error) {
	return answer{status: http.StatusOK, body: client.Health{Status: "ok"}}, nil
}

// readyz says whether to send requests to this node. A degraded node answers 200, too: in an
// outage it admits the hits whose limits allow that.
func (s *Server) readyz(*call) (answer, error) {
	switch state, reason := s.Ready(); state {
	case StateReady, StateDegraded:
		return answer{status: http.StatusOK, body: client.Health{Status: string(state), Reason: reason}}, nil
	case StateStopping:
		return answer{}, &problem.Fault{Kind: problem.KindNotReady, Detail: "this node is stopping"}
	default:
		return answer{}, &problem.Fault{Kind: problem.KindNotReady, Detail: "the database has not been reached yet"}
	}
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request, _ params) int {
	s.MetricsHandler().ServeHTTP(w, r)
	return http.StatusOK
}

// MetricsHandler serves the registry in Prometheus' format, for a listener of its own.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{})
}
