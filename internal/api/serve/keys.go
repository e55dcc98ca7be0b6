package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/queue"
	"quotad/internal/throttle"
)

// authenticate returns the live key of a secret. A key that this node does not know counts as a
// failure of its address, unless the key turns out to be a live one. nil: failures are not limited.
func (s *Server) authenticate(failures *throttle.Throttle, r *http.Request, secret string) (plans.Key, error) {
	charged := false
	key, err := s.Catalog.Authenticate(r.Context(), secret, func() error {
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
func (s *Server) countFailures() {
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_failed_keys_total", Help: "Requests with a wrong key, by answer: 401 unauthorized, or 429 too-many-failures beyond --failed-keys-per-minute.",
	}, []string{"type"})
	s.Registry.MustRegister(failed)
	s.keysWrong = failed.WithLabelValues(problem.KindUnauthorized.Name)
	s.keysLimited = failed.WithLabelValues(problem.KindTooManyFailures.Name)
}

// The answers to a request without a key and with a wrong one.
var (
	faultNoKey    = &problem.Fault{Kind: problem.KindUnauthorized, Detail: "send the header Authorization: Bearer <key>" + makeKey}
	faultWrongKey = &problem.Fault{Kind: problem.KindUnauthorized, Detail: "the key is unknown, revoked or expired" + makeKey, BearerError: "invalid_token"}
)

const makeKey = ". An admin makes a key with POST /v1/keys, and on quotad's machine quotad keys create does"

// wrongScope is the answer to a key of another scope.
func wrongScope(has plans.Scope, needs apidoc.Access) *problem.Fault {
	return &problem.Fault{Kind: problem.KindWrongScope, Detail: "this key has the scope " + string(has) + "; needed is " + needs.Scopes(), BearerError: "insufficient_scope"}
}

// authorize checks the request's key against the route's scopes; admin may do everything. The
// key is the sender of the request.
func (s *Server) authorize(r *http.Request, rt *Route) (queue.SenderID, error) {
	if rt.Access == apidoc.Anyone {
		return "", nil
	}
	if as, ok := r.Context().Value(identityKey{}).(Identity); ok {
		return s.authorizeWithin(as, rt)
	}
	given := r.Header["Authorization"]
	if len(given) != 1 {
		return "", faultNoKey
	}
	scheme, secret, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", faultNoKey
	}
	if secret == "" {
		return "", faultWrongKey
	}
	key, err := s.authenticate(s.Failures, r, secret)
	switch {
	case errors.Is(err, plans.ErrUnknownKey):
		return "", faultWrongKey
	case err != nil:
		return "", err
	case !rt.allows(key.Scope):
		return "", wrongScope(key.Scope, rt.Access)
	}
	return queue.SenderID(key.ID), nil
}

// authorizeWithin is authorize for a request within the process.
func (s *Server) authorizeWithin(as Identity, rt *Route) (queue.SenderID, error) {
	if !rt.allows(as.Scope) {
		return "", wrongScope(as.Scope, rt.Access)
	}
	return queue.SenderID(as.KeyID), nil
}

// Identity is whom a request acts for that was made within the process, instead of a key.
type Identity struct {
	Scope   plans.Scope
	KeyID   string // of the key that a session began with; what the requests of a portal have in common
	KeyName string
}

// identityKey is the context's key of an Identity. The context of a request that comes by the network
// is made in the process, so that it has none.
type identityKey struct{}

// As is a context whose requests act for an identity.
func As(ctx context.Context, as Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, as)
}

// signInsPerMinute is how often an address may fail to sign in to the pages.
const signInsPerMinute = 5

// SignIn returns the live key of a secret that somebody signs in to the pages with. Wrong ones
// are limited by address, more strictly than those of requests: a person types them. Without a
// key, status and detail say why as an answer to a request would.
func (s *Server) SignIn(r *http.Request, secret string) (key plans.Key, status int, detail string) {
	key, err := s.authenticate(s.signIns, r, secret)
	switch {
	case errors.Is(err, plans.ErrUnknownKey):
		return key, faultWrongKey.Kind.Status, faultWrongKey.Detail
	case err != nil:
		f := problem.Of(err)
		return key, f.Kind.Status, f.Detail
	}
	return key, http.StatusOK, ""
}
