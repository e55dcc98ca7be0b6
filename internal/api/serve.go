package api

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

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/queue"
)

// Handler serves every route.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.dispatch) }

// dispatch hands single hits straight to their route.
// Every GET route answers HEAD, too; net/http leaves out the body.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	if isHit(r) {
		s.single.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodHead {
		ctx := chi.NewRouteContext()
		ctx.Routes, ctx.RouteMethod = s.router, http.MethodGet
		r = r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, ctx))
	}
	s.router.ServeHTTP(w, r)
}

// isHit reports whether a request is one of a single hit, as nearly all are.
func isHit(r *http.Request) bool {
	return r.URL.Path == hitsPattern && r.URL.RawPath == "" && r.Method == http.MethodPost
}

// An answer is what an ordinary route gives back; see route.handle.
type answer struct {
	status int
	etag   string // unquoted; empty: none
	body   any    // nil: none (204)
}

// params are what is known of a request before its body is read.
type params struct {
	query request.Query
	from  queue.SenderID // the id of its key
}

// A call is one request to an ordinary route: allowed, its query checked, its body read.
type call struct {
	r     *http.Request
	query request.Query
	from  queue.SenderID
	body  []byte
}

func (c *call) ctx() context.Context { return c.r.Context() }

// serve is all that happens to a request of a route: measure, recover, check the key and
// the query, then answer. It wraps no ResponseWriter: what answers says its status.
func (s *Server) serve(rt *route) http.Handler {
	m := s.metrics.route(rt.Pattern, rt.Method)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.options.Wall()
		status := http.StatusInternalServerError
		defer func() {
			p := recover()
			took := s.options.Wall().Sub(start)
			m.observe(status, took)
			if s.log.Enabled(r.Context(), slog.LevelDebug) {
				s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", status, "took", took)
			}
			if p != nil {
				panicked(w, r, s.log, p)
			}
		}()
		status = s.answer(w, r, rt)
	})
}

// answer checks what all routes have in common and lets the route answer.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, rt *route) int {
	from, err := s.authorize(r, rt)
	if err != nil {
		return s.fail(w, r, err)
	}
	q, err := request.ParseQuery(r, &rt.Operation)
	if err != nil {
		return s.fail(w, r, err)
	}
	if rt.audited() {
		r = r.WithContext(plans.As(r.Context(), actor(w, r, from)))
	}
	if rt.raw != nil {
		return rt.raw(w, r, params{q, from})
	}
	if rt.wait > 0 {
		// An error means that the connection is gone, which the next write says.
		_ = http.NewResponseController(w).SetWriteDeadline(s.options.Wall().Add(rt.wait + writeTimeout))
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.wait, s.options.Deadline))
	defer cancel()
	c := &call{r: r.WithContext(ctx), query: q, from: from}
	buf := respond.Buffer{From: from} // of this request only: what a route keeps may share its bytes
	defer buf.Release()
	if rt.Request != nil {
		if err = request.ReadBody(r, &buf, s.memory, request.MaxBody); err != nil {
			return s.fail(w, r, err)
		}
		c.body = buf.B
	}
	a, body, err := s.handle(rt, c)
	if err != nil {
		return s.fail(w, r, explain(outOfTime(ctx, err), namesOf(c, rt)))
	}
	return s.write(w, c.r, &buf, a, body)
}

// handle makes a typed answer and its body. A view has one of the places for reading meanwhile,
// unless everybody may see it.
func (s *Server) handle(rt *route, c *call) (a answer, body []byte, err error) {
	read := reads(c.r)
	if read && rt.Access != apidoc.Anyone {
		if err := s.reading.take(c.ctx(), c.from); err != nil {
			return a, nil, err
		}
		defer s.reading.giveBack()
	}
	if a, err = rt.handle(c); err != nil || a.body == nil {
		return a, nil, err
	}
	ctx := c.ctx()
	if !read { // what was done is answered in any case; the answer is about as large as its body
		ctx = context.WithoutCancel(ctx)
	}
	body, err = s.encode(ctx, c.from, a.body)
	return a, body, err
}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// write sends a typed answer, which counts among what buf holds until the client has it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, buf *respond.Buffer, a answer, body []byte) int {
	if a.etag != "" {
		w.Header()["ETag"] = []string{request.QuoteETag(a.etag)}
	}
	if a.body == nil {
		w.Header()["Cache-Control"] = respond.NoStore
		w.WriteHeader(a.status)
		return a.status
	}
	if reads(r) {
		if err := buf.Hold(s.memory, len(body)); err != nil {
			return s.fail(w, r, err)
		}
	}
	return respond.Write(w, a.status, respond.PlainJSON, body)
}

// encode makes the body of an ordinary answer. No more of them are made at once than there are
// processors: a view of thousands of reservations takes milliseconds of one. Many at once would
// keep the scheduler from what every hit needs, such as the poll of changes. Encoding ends with ctx.
func (s *Server) encode(ctx context.Context, from queue.SenderID, body any) ([]byte, error) {
	if err := s.processing.take(ctx, from); err != nil {
		return nil, err
	}
	defer s.processing.giveBack()
	var all bytes.Buffer
	err := json.MarshalWrite(respond.NewOut(ctx, &all), body, json.Deterministic(true), exactNumbers)
	if ctx.Err() != nil {
		err = ctx.Err() // and not what the encoder makes of it
	}
	return all.Bytes(), err
}

// fail answers with the problem that an error is, and logs what is our own fault.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) int {
	f := problem.Of(err)
	s.logInternal(r, f, err)
	cut := f.Kind == problem.KindTooLarge || noMemory(err) && !request.SkipBody(w, r, s.options.Wall().Add(skipTime))
	if cut && r.ProtoMajor == 1 {
		// Else net/http would first wait for the rest of the body, which may never come.
		w.Header().Set("Connection", "close")
	}
	return problem.Write(w, f)
}

// noMemory reports whether a request's body was not read, or its answer not sent, for want of memory.
func noMemory(err error) bool {
	return errors.Is(err, respond.ErrMemory) || errors.Is(err, respond.ErrMemoryShare)
}

// hitFailed is fail for a hit.
func (s *Server) hitFailed(w http.ResponseWriter, r *http.Request, err error) int {
	s.metrics.failed(err, 1)
	return s.fail(w, r, err)
}

func (s *Server) logInternal(r *http.Request, f *problem.Fault, err error) {
	if f.Kind == problem.KindInternal {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	} else if f.Kind.Status >= http.StatusInternalServerError {
		s.log.Debug("request not served", "method", r.Method, "path", r.URL.Path, "error", err)
	}
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/docs/" {
		s.toDocs(w, r, params{})
		return
	}
	problem.Write(w, &problem.Fault{Kind: problem.KindNotFound, Detail: "there is no such route: see /docs"})
}

func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.RawPath
	}
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if s.router.Find(chi.NewRouteContext(), method, path) != "" {
			allow = append(allow, method)
			if method == http.MethodGet {
				allow = append(allow, http.MethodHead)
			}
		}
	}
	has := strings.Join(allow, ", ")
	problem.Write(w, &problem.Fault{Kind: problem.KindMethod, Detail: "this path does not have the method " + plans.Shorten(r.Method) + ": it has " + has, Allow: has})
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
func (s *Server) authorize(r *http.Request, rt *route) (queue.SenderID, error) {
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
	key, err := s.authenticate(r, secret)
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
func (s *Server) authorizeWithin(as Identity, rt *route) (queue.SenderID, error) {
	if !rt.allows(as.Scope) {
		return "", wrongScope(as.Scope, rt.Access)
	}
	return queue.SenderID(as.KeyID), nil
}

// exactNumbers writes a json.Number as a number. jsonv2 would write it as a string.
var exactNumbers = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n stdjson.Number) error {
	return e.WriteValue(jsontext.Value(n))
}))

// skipTime is how long a client may go on sending a body that was refused for want of memory.
const skipTime = time.Second
