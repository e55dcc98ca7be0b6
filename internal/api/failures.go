package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/throttle"
)

// authenticate returns the live key of a secret. A key that this node does not know counts as a
// failure of its address, unless the key turns out to be a live one.
func (s *Server) authenticate(r *http.Request, secret string) (plans.Key, error) {
	return s.authenticateBy(s.failures, r, secret)
}

// authenticateBy is authenticate with failures that are counted by one throttle; nil: not limited.
func (s *Server) authenticateBy(failures *throttle.Throttle, r *http.Request, secret string) (plans.Key, error) {
	charged := false
	key, err := s.catalog.Authenticate(r.Context(), secret, func() error {
		if failures == nil {
			return nil
		}
		if wait := failures.Take(throttle.Address(r.RemoteAddr)); wait > 0 {
			s.keysLimited.Inc()
			return tooManyFailures(wait)
		}
		charged = true
		return nil
	})
	switch {
	case errors.Is(err, plans.ErrUnknownKey):
		s.keysWrong.Inc()
	case charged:
		failures.GiveBack(throttle.Address(r.RemoteAddr))
	}
	return key, err
}

func tooManyFailures(wait time.Duration) *problem.Fault {
	return &problem.Fault{
		Kind:       problem.KindTooManyFailures,
		Detail:     "keys that are not known came from this address too often (--failed-keys-per-minute). A key that is known is let in. Nothing was looked up, charged or stored",
		RetryAfter: int((wait + time.Second - 1) / time.Second),
	}
}

// countFailures makes the metric of failed keys.
func (s *Server) countFailures(registry *prometheus.Registry) {
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_failed_keys_total", Help: "Requests with a wrong key, by answer: 401 unauthorized, or 429 too-many-failures beyond --failed-keys-per-minute.",
	}, []string{"type"})
	registry.MustRegister(failed)
	s.keysWrong = failed.WithLabelValues(problem.KindUnauthorized.Name)
	s.keysLimited = failed.WithLabelValues(problem.KindTooManyFailures.Name)
}
