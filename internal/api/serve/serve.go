package serve

import (
	"bytes"
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/queue"
)

// Serve is all that happens to a request of a route: measure, recover, check the key and
// the query, then answer. It wraps no ResponseWriter: what answers says its status.
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
				s.Log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", status, "took", took)
			}
			if p != nil {
				panicked(w, r, s.Log, p)
			}
		}()
		status = s.answer(w, r, rt)
	})
}

// answer checks what all routes have in common and lets the route answer.
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
		// An error means that the connection is gone, which the next write says.
		_ = http.NewResponseController(w).SetWriteDeadline(s.Wall().Add(rt.Wait + WriteTimeout))
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.Wait, s.Deadline))
	defer cancel()
	c := &Call{R: r.WithContext(ctx), Query: q, From: from}
	buf := respond.Buffer{From: from} // of this request only: what a route keeps may share its bytes
	defer buf.Release()
	if rt.Request != nil {
		if err = request.ReadBody(r, &buf, s.Memory, request.MaxBody); err != nil {
			return s.Fail(w, r, err)
		}
		c.Body = buf.B
	}
	a, body, err := s.handle(rt, c)
	if err != nil {
		return s.Fail(w, r, Explain(OutOfTime(ctx, err), namesOf(c, rt)))
	}
	return s.write(w, c.R, &buf, a, body)
}

// handle makes a typed answer and its body. A view has one of the places for reading meanwhile,
// unless everybody may see it.
func (s *Server) handle(rt *Route, c *Call) (a Answer, body []byte, err error) {
	read := reads(c.R)
	if read && rt.Access != apidoc.Anyone {
		if err := s.Reading.Take(c.Ctx(), c.From); err != nil {
			return a, nil, err
		}
		defer s.Reading.GiveBack()
	}
	if a, err = rt.Handle(c); err != nil || a.Body == nil {
		return a, nil, err
	}
	ctx := c.Ctx()
	if !read { // what was done is answered in any case; the answer is about as large as its body
		ctx = context.WithoutCancel(ctx)
	}
	body, err = s.encode(ctx, c.From, a.Body)
	return a, body, err
}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// write sends a typed answer, which counts among what buf holds until the client has it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, buf *respond.Buffer, a Answer, body []byte) int {
	if a.ETag != "" {
		w.Header()["ETag"] = []string{request.QuoteETag(a.ETag)}
	}
	if a.Body == nil {
		w.Header()["Cache-Control"] = respond.NoStore
		w.WriteHeader(a.Status)
		return a.Status
	}
	if reads(r) {
		if err := buf.Hold(s.Memory, len(body)); err != nil {
			return s.Fail(w, r, err)
		}
	}
	return respond.Write(w, a.Status, respond.PlainJSON, body)
}

// encode makes the body of an ordinary answer. No more of them are made at once than there are
// processors: a view of thousands of reservations takes milliseconds of one. Many at once would
// keep the scheduler from what every hit needs, such as the poll of changes. Encoding ends with ctx.
func (s *Server) encode(ctx context.Context, from queue.SenderID, body any) ([]byte, error) {
	if err := s.Processing.Take(ctx, from); err != nil {
		return nil, err
	}
	defer s.Processing.GiveBack()
	var all bytes.Buffer
	err := json.MarshalWrite(respond.NewOut(ctx, &all), body, json.Deterministic(true), exactNumbers)
	if ctx.Err() != nil {
		err = ctx.Err() // and not what the encoder makes of it
	}
	return all.Bytes(), err
}

// Fail answers with the problem that an error is, and logs what is our own fault.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) int {
	f := problem.Of(err)
	s.LogInternal(r, f, err)
	cut := f.Kind == problem.KindTooLarge || noMemory(err) && !request.SkipBody(w, r, s.Wall().Add(skipTime))
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

// LogInternal logs an error that is our own fault.
func (s *Server) LogInternal(r *http.Request, f *problem.Fault, err error) {
	if f.Kind == problem.KindInternal {
		s.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	} else if f.Kind.Status >= http.StatusInternalServerError {
		s.Log.Debug("request not served", "method", r.Method, "path", r.URL.Path, "error", err)
	}
}

// exactNumbers writes a json.Number as a number. jsonv2 would write it as a string.
var exactNumbers = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n stdjson.Number) error {
	return e.WriteValue(jsontext.Value(n))
}))

// skipTime is how long a client may go on sending a body that was refused for want of memory.
const skipTime = time.Second
