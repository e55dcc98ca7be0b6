package api

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

// serve is all that happens to a request of a route: measure, recover, check the key and
// the query, then answer. It wraps no ResponseWriter: what answers says its status.
func (s *shared) serve(rt *route) http.Handler {
	m := s.metrics.route(rt.Pattern, rt.Method)
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
func (s *shared) answer(w http.ResponseWriter, r *http.Request, rt *route) int {
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
		_ = http.NewResponseController(w).SetWriteDeadline(s.Wall().Add(rt.wait + writeTimeout))
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.wait, s.Deadline))
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
func (s *shared) handle(rt *route, c *call) (a answer, body []byte, err error) {
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
func (s *shared) write(w http.ResponseWriter, r *http.Request, buf *respond.Buffer, a answer, body []byte) int {
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
func (s *shared) encode(ctx context.Context, from queue.SenderID, body any) ([]byte, error) {
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
func (s *shared) fail(w http.ResponseWriter, r *http.Request, err error) int {
	f := problem.Of(err)
	s.logInternal(r, f, err)
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

func (s *shared) logInternal(r *http.Request, f *problem.Fault, err error) {
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
