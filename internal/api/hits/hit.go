package hits

import (
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/quota/model"
)

// decodeHit reads and checks one hit. like is the subject of an earlier hit, see plainHit.
func decodeHit(body []byte, like *respond.Subject) (hit, error) {
	if h, ok := plainHit(body, like); ok {
		return h, nil
	}
	return decodeAnyHit(body)
}

// decodeAnyHit is decodeHit for any JSON, without the fast path for plain bodies.
func decodeAnyHit(body []byte) (hit, error) {
	var in client.HitRequest
	if err := request.Decode(body, &in); err != nil {
		return hit{}, err
	}
	if bad := request.CheckHit(&in, 0); len(bad) > 0 {
		return hit{}, problem.InvalidFields(bad)
	}
	return askedOf(&in, request.OpHit), nil
}

// askedOf returns the hit of a checked request.
func askedOf(in *client.HitRequest, kind string) hit {
	h := hit{
		Subject: respond.Subject{Customer: in.Customer, Meter: in.Meter, Cost: 1}, attributes: in.Attributes, dryRun: in.DryRun,
		overrun: in.Overrun, kind: kind,
	}
	if in.Cost != nil {
		h.Cost = *in.Cost
	}
	if in.ID != nil {
		h.id = *in.ID
	}
	return h
}

// denyStatusOf reads deny_status, which is the status of a refusal.
func denyStatusOf(q request.Query) (int, error) {
	switch q["deny_status"] {
	case "":
		if _, given := q["deny_status"]; !given {
			return http.StatusTooManyRequests, nil
		}
	case "429":
		return http.StatusTooManyRequests, nil
	case "403":
		return http.StatusForbidden, nil
	case "200":
		return http.StatusOK, nil
	}
	return 0, problem.Invalid("deny_status", "must be 200, 403 or 429")
}

// hits serves POST /v1/hits. Nothing here uses reflection except decodeAnyHit.
func (s *Room) hits(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	denied, err := denyStatusOf(p.Query)
	var h hit
	if err == nil {
		h, err = s.readHit(r, buf)
	}
	if err != nil {
		return s.hitFailed(w, r, err)
	}
	ctx := s.waits.until(r.Context())
	defer ctx.end()
	d, err := s.decide(ctx, s.Engine.From(p.From), &h)
	if err != nil {
		return s.hitFailed(w, r, serve.Explain(err, h.names()))
	}
	return s.answerHit(w, &h, &d, denied, buf)
}

// readHit reads the hit of a request.
func (s *Room) readHit(r *http.Request, buf *respond.Buffer) (h hit, err error) {
	key, err := request.IdempotencyKey(r.Header)
	if err != nil {
		return h, err
	}
	if err = request.ReadBody(r, buf, s.Memory, request.MaxBody); err != nil {
		return h, err
	}
	if h, err = decodeHit(buf.B, &buf.Last); err == nil {
		buf.Last = h.Subject
		h.id, err = request.OneID(h.id, key)
	}
	return h, err
}

// answerHit writes the decision of a single hit: 200, or the status of a refusal.
func (s *Room) answerHit(w http.ResponseWriter, h *hit, d *model.Decision, denied int, buf *respond.Buffer) int {
	wait := s.tellLimits(w, h, d, buf)
	status, contentType := http.StatusOK, respond.PlainJSON
	if !d.Allowed {
		status, contentType = denied, respond.ProblemJSON
	}
	buf.B = respond.AppendDecision(buf.B[:0], &h.Subject, d, buf.Views, wait, status)
	return respond.Write(w, status, contentType, buf.B)
}

// tellLimits counts the decision in the metrics and writes the headers of its limits. It returns the time until
// a retry, see model.Decision.RetryAfter.
func (s *Room) tellLimits(w http.ResponseWriter, h *hit, d *model.Decision, buf *respond.Buffer) (wait int64) {
	s.metrics.count(h, d)
	buf.Views = respond.AppendViews(buf.Views[:0], d)
	s.metrics.countExceeded(h, d, buf.Views)
	if !d.Allowed {
		wait = d.RetryAfter()
	}
	buf.QuotaHeaders(w.Header(), s.ResetStyle, d.Now(), d.FromNow(wait))
	return wait
}

// hitFailed responds with the problem for an error of a hit, and counts the error.
func (s *Room) hitFailed(w http.ResponseWriter, r *http.Request, err error) int {
	s.failed(err, 1)
	return s.Fail(w, r, err)
}

func (h *hit) names() serve.Names { return serve.Names{Customer: h.Customer, Meter: h.Meter} }

var denyStatusParam = apidoc.Param{Name: "deny_status", Type: "string", Doc: "The status of a refusal. 429 when left out.", Enum: []string{"200", "403", "429"}}

// Pattern is the route of single hits, which cause nearly all of the load.
const Pattern = "/v1/hits"

// Routes returns the routes of hits and refunds. A nil Room only describes the routes.
func (s *Room) Routes() []serve.Route {
	charging := []*problem.Kind{
		problem.KindNotFound, problem.KindNotInPlan, problem.KindSuspended, problem.KindEnded, problem.KindIDReused,
		problem.KindRefunded, problem.KindUnderWay,
	}
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: Pattern, Access: apidoc.Backends, Tag: "Backends", ID: "hits.create", Summary: "Consume units",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[client.HitRequest](), Response: reflect.TypeFor[client.Decision](), Refusable: true, Status: serve.OK200,
			Problems: charging, IDHeader: request.IdempotencyHeader,
		}, Raw: s.hits},
		s.authorizeRoute(),
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/hits/batch", Access: apidoc.Backends, Tag: "Backends", ID: "hits.createBatch",
			Summary: "Consume units many times",
			Request: reflect.TypeFor[client.Batch](), Response: reflect.TypeFor[batchResults](), Status: serve.OK200, Problems: charging,
			IDHeader: request.IdempotencyHeader,
		}, Raw: s.hitsBatch},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/refunds", Access: apidoc.Backends, Tag: "Backends", ID: "refunds.create", Summary: "Give units back",
			Request: reflect.TypeFor[client.RefundRequest](), Response: reflect.TypeFor[client.Refund](), Status: serve.OK200,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindIDReused, problem.KindUnderWay, problem.KindArchived}, IDHeader: request.IdempotencyHeader,
		}, Raw: s.refund},
	}
}
