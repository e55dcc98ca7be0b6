package serve

import (
	"bytes"
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/queue"
	"quotad/internal/throttle"
)

// Serve returns the handler of a route. It measures the request, recovers from panics, checks the key and the
// query, and lets the route respond. It wraps no ResponseWriter, because every response function returns its
// status.
func (s *Server) Serve(rt *Route) http.Handler {
	m := s.Metrics.route(rt.Pattern, rt.Method)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.Wall()
		status := http.StatusInternalServerError
		defer func() {
			p := recover()
			took := s.Wall().Sub(start)
			m.observe(status, took)
			if s.Log.Enabled(r.Context(), slog.LevelDebug) {
				s.Log.Debug("request", "request_id", RequestID(w), "method", r.Method, "path", r.URL.Path, "status", status, "took", took)
			}
			if p != nil {
				panicked(w, r, s.Log, p)
			}
		}()
		status = s.answer(w, r, rt)
	})
}

// answer makes the checks that all routes have in common and lets the route respond.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, rt *Route) int {
	from, err := s.authorize(r, rt)
	if err != nil {
		return s.Fail(w, r, err)
	}
	q, err := request.ParseQuery(r, &rt.Operation)
	if err != nil {
		return s.Fail(w, r, err)
	}
	if rt.Audited() {
		r = r.WithContext(plans.As(r.Context(), actor(w, r, from)))
	}
	if rt.Raw != nil {
		return rt.Raw(w, r, Params{q, from})
	}
	if rt.Wait > 0 {
		// An error means that the connection is gone, which the next write reports.
		_ = http.NewResponseController(w).SetWriteDeadline(s.Wall().Add(rt.Wait + WriteTimeout))
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.Wait, s.Deadline))
	defer cancel()
	c := &Call{r: r.WithContext(ctx), Query: q, From: from, route: rt}
	buf := respond.Buffer{From: from} // only for this request, because a route may keep strings that share the buffer's bytes
	defer buf.Release()
	if rt.Request != nil {
		if err = request.ReadBody(r, &buf, s.Memory, request.MaxBody); err != nil {
			return s.Fail(w, r, err)
		}
		c.Body = buf.B
	} else if !reads(r) {
		if err = request.NoBody(r); err != nil {
			return s.Fail(w, r, err)
		}
	}
	a, body, err := s.handle(rt, c)
	if err != nil {
		return s.Fail(w, r, Explain(OutOfTime(ctx, err), namesOf(c)))
	}
	return s.write(w, c.r, &buf, a, body)
}

// handle creates the response of a typed route and its body. A view occupies one of the places for reading
// meanwhile, unless it is public.
func (s *Server) handle(rt *Route, c *Call) (a answer, body []byte, err error) {
	read := reads(c.r)
	if read && rt.Access != apidoc.Anyone {
		if err := s.Reading.Take(c.Ctx(), c.From); err != nil {
			return a, nil, err
		}
		defer s.Reading.GiveBack()
	}
	if a, err = rt.handle(c); err != nil || a.body == nil {
		return a, nil, err
	}
	ctx := c.Ctx()
	if !read { // report a completed change in any case; the response is about as large as its body
		ctx = context.WithoutCancel(ctx)
	}
	body, err = s.encode(ctx, c.From, a.body)
	return a, body, err
}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// write sends a typed response. Its bytes count as reserved by buf until the client has received them.
func (s *Server) write(w http.ResponseWriter, r *http.Request, buf *respond.Buffer, a answer, body []byte) int {
	if a.body == nil {
		w.Header()["Cache-Control"] = respond.NoStore
		w.WriteHeader(a.status)
		return a.status
	}
	if reads(r) {
		if err := buf.Hold(s.Memory, len(body)); err != nil {
			return s.Fail(w, r, err)
		}
	}
	if a.etag != "" { // no error has an entity tag
		w.Header()["ETag"] = []string{request.QuoteETag(a.etag)}
	}
	return respond.Write(w, a.status, respond.PlainJSON, body)
}

// encode encodes the body of an ordinary response. It encodes at most as many bodies at once as there are
// processors, because a view of thousands of reservations occupies a processor for milliseconds. Many such views
// at once would delay work that every hit needs, such as the poll for changes. Encoding ends with ctx.
func (s *Server) encode(ctx context.Context, from queue.SenderID, body any) ([]byte, error) {
	if err := s.Processing.Take(ctx, from); err != nil {
		return nil, err
	}
	defer s.Processing.GiveBack()
	var all bytes.Buffer
	err := json.MarshalWrite(respond.NewOut(ctx, &all), body, json.Deterministic(true), exactNumbers)
	if ctx.Err() != nil {
		err = ctx.Err() // instead of the encoder's error
	}
	return all.Bytes(), err
}

// exactNumbers encodes a json.Number as a number, because jsonv2 would encode it as a string.
var exactNumbers = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n stdjson.Number) error {
	return e.WriteValue(jsontext.Value(n))
}))

// authenticate returns the active key of a secret. A key that this node does not know counts as a failure of its
// address, unless the database knows the key as active. If failures is nil, failures are not limited.
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

// countFailures registers the metric of failed keys.
func (s *Server) countFailures() {
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_failed_keys_total", Help: "Requests with a wrong key, by answer: 401 unauthorized, or 429 too-many-failures beyond --failed-keys-per-minute.",
	}, []string{"type"})
	s.Registry.MustRegister(failed)
	s.keysWrong = failed.WithLabelValues(problem.KindUnauthorized.Name)
	s.keysLimited = failed.WithLabelValues(problem.KindTooManyFailures.Name)
}

// The responses to a request without a key and to a request with a wrong key.
var (
	faultNoKey    = &problem.Fault{Kind: problem.KindUnauthorized, Detail: "send the header Authorization: Bearer <key>" + makeKey}
	faultWrongKey = &problem.Fault{Kind: problem.KindUnauthorized, Detail: "the key is unknown, revoked or expired" + makeKey, BearerError: "invalid_token"}
)

const makeKey = ". An admin makes a key with POST /v1/keys, and on quotad's machine quotad keys create does"

// wrongScope returns the problem for a key of another scope.
func wrongScope(has plans.Scope, needs apidoc.Access) *problem.Fault {
	return &problem.Fault{
		Kind: problem.KindWrongScope, Detail: "this key has the scope " + string(has) + "; needed is " + needs.Scopes(),
		BearerError: "insufficient_scope",
	}
}

// authorize checks the scope of the request's key against the scopes of the route. The scope admin may call
// every route. The key is the sender of the request.
func (s *Server) authorize(r *http.Request, rt *Route) (queue.SenderID, error) {
	if rt.Access == apidoc.Anyone {
		return "", nil
	}
	if as, ok := r.Context().Value(identityKey{}).(Identity); ok {
		return s.authorizeWithin(as, rt)
	}
	secret, given := keyOf(r, rt)
	if !given {
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

// keyOf returns the key of a request. A route's own header takes precedence over Authorization, which may belong
// to a gateway's client.
func keyOf(r *http.Request, rt *Route) (secret string, given bool) {
	if rt.KeyHeader != "" {
		if own := r.Header[rt.KeyHeader]; len(own) > 0 {
			return own[0], len(own) == 1
		}
	}
	all := r.Header["Authorization"]
	if len(all) != 1 {
		return "", false
	}
	scheme, secret, _ := strings.Cut(all[0], " ")
	return secret, strings.EqualFold(scheme, "Bearer")
}

// authorizeWithin is authorize for a request from within the process.
func (s *Server) authorizeWithin(as Identity, rt *Route) (queue.SenderID, error) {
	if !rt.allows(as.Scope) {
		return "", wrongScope(as.Scope, rt.Access)
	}
	return queue.SenderID(as.KeyID), nil
}

// Identity is the user on whose behalf a request from within the process is made. It replaces a key.
type Identity struct {
	Scope   plans.Scope
	KeyID   string // id of the key that began the session; all requests of a portal link share it
	KeyName string
	Request string // id of the page's request; if empty, a new id is generated
}

// identityKey is the context key of an Identity. The server creates the context of every request from the
// network, so such a request has no Identity.
type identityKey struct{}

// As returns a context whose requests are made on behalf of an identity.
func As(ctx context.Context, as Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, as)
}

// signInsPerMinute is the number of failed sign-ins to the pages that an address may have in a minute.
const signInsPerMinute = 5

// SignIn returns the active key of a secret with which somebody signs in to the pages. Wrong secrets are limited
// by address, and more strictly than in requests, because a person types them. If there is no key, status and
// detail contain the reason as in a response.
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
