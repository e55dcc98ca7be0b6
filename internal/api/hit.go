package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// hitRequest is the body of POST /v1/hits and one member of a batch.
type hitRequest client.HitRequest

// A hit is a checked hitRequest.
type hit struct {
	respond.Subject
	attributes map[string]string
	dryRun     bool
	overrun    bool
	kind       string // of operation, of the id
	id         string // the client's; empty: none
	batch      string // of a batch's id: what else the batch is
}

// look reports whether the hit charges nothing, whatever comes of it.
func (h *hit) look() bool { return h.dryRun || h.Cost == 0 }

// operation is the hit's id for the engine. A hit that only looks has no id, for looking again
// does no harm.
func (h *hit) operation() model.ID {
	if h.id == "" || h.look() {
		return model.ID{}
	}
	parts := []string{h.Meter, strconv.FormatInt(h.Cost, 10), h.batch}
	if h.overrun {
		parts = append(parts, "overrun")
	}
	return model.NewID(h.kind, h.id, payloadOf(h.attributes, parts...)...)
}

// decodeHit reads and checks one hit. like is the subject of an earlier hit, see plainHit.
func decodeHit(body []byte, like *respond.Subject) (hit, error) {
	if h, ok := plainHit(body, like); ok {
		return h, nil
	}
	return decodeAnyHit(body)
}

// decodeAnyHit is decodeHit without the short cut for plain bodies: it takes any JSON.
func decodeAnyHit(body []byte) (hit, error) {
	var in hitRequest
	if err := decode(body, &in); err != nil {
		return hit{}, err
	}
	if bad := in.check(0); len(bad) > 0 {
		return hit{}, problem.InvalidFields(bad)
	}
	return in.hit(opHit), nil
}

// hit is what a checked request asks for.
func (in *hitRequest) hit(kind string) hit {
	h := hit{Subject: respond.Subject{Customer: in.Customer, Meter: in.Meter, Cost: 1}, attributes: in.Attributes, dryRun: in.DryRun, overrun: in.Overrun, kind: kind}
	if in.Cost != nil {
		h.Cost = *in.Cost
	}
	if in.ID != nil {
		h.id = *in.ID
	}
	return h
}

// check lists all that is wrong with a hit that was decoded. least is the smallest cost that
// is allowed.
func (in *hitRequest) check(least int64) (bad model.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	switch {
	case in.Customer == "":
		refuse("customer", "is required")
	case !plans.ValidCustomerKey(in.Customer):
		refuse("customer", plans.CustomerKeyRule)
	}
	switch {
	case in.Meter == "":
		refuse("meter", "is required")
	case !plans.ValidKey(in.Meter):
		refuse("meter", plans.KeyRule)
	}
	if in.Cost != nil && (*in.Cost < least || *in.Cost > model.MaxNumber) {
		refuse("cost", fmt.Sprintf("must be between %d and %d", least, model.MaxNumber))
	}
	if in.ID != nil {
		if wrong := checkID(*in.ID); wrong != "" {
			refuse("id", wrong)
		}
	}
	if in.Overrun && in.DryRun {
		refuse("overrun", "does not go with dry_run: what was spent already is charged, or left out")
	}
	return append(bad, checkAttributes(in.Attributes, "attributes")...)
}

// checkAttributes lists what is wrong with attributes, in the order of their names; parent
// is where they stand. A value becomes part of a counter's key.
func checkAttributes(attributes map[string]string, parent string) (bad model.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	if len(attributes) > model.MaxAttributes {
		refuse(parent, fmt.Sprintf("must not have more than %d names", model.MaxAttributes))
		return bad
	}
	for name, value := range attributes {
		if len(name) > model.MaxAttributeName || !plans.ValidKey(name) {
			refuse(parent+"."+name, "the name must be 1 to 64 letters, digits or . _ : -")
		}
		switch {
		case len(value) > model.MaxAttributeValue:
			refuse(parent+"."+name, "the value must not have more than 200 bytes")
		case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
			refuse(parent+"."+name, "the value must be UTF-8 without NUL characters")
		}
	}
	slices.SortStableFunc(bad, func(a, b model.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return bad
}

// denyStatus reads deny_status: the status of a refusal.
func (q query) denyStatus() (int, error) {
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
func (s *Server) hits(w http.ResponseWriter, r *http.Request, p params) int {
	buf := respond.BufferFor(p.from)
	defer respond.PutBuffer(buf)
	denied, err := p.query.denyStatus()
	var h hit
	if err == nil {
		h, err = s.readHit(r, buf)
	}
	if err != nil {
		return s.hitFailed(w, r, err)
	}
	ctx := s.waits.until(r.Context())
	defer ctx.end()
	d, err := s.decide(ctx, s.engine.From(p.from), &h)
	if err != nil {
		return s.hitFailed(w, r, explain(err, h.names()))
	}
	return s.answerHit(w, &h, &d, denied, buf)
}

// readHit reads the hit that a request asks for.
func (s *Server) readHit(r *http.Request, buf *respond.Buffer) (h hit, err error) {
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return h, err
	}
	if err = s.readBody(r, buf, maxBody); err != nil {
		return h, err
	}
	if h, err = decodeHit(buf.B, &buf.Last); err == nil {
		buf.Last = h.Subject
		h.id, err = oneID(h.id, key)
	}
	return h, err
}

// answerHit writes the decision of a single hit: 200, or the status of a refusal.
func (s *Server) answerHit(w http.ResponseWriter, h *hit, d *model.Decision, denied int, buf *respond.Buffer) int {
	s.metrics.count(h, d)
	buf.Views = respond.AppendViews(buf.Views[:0], d)
	s.metrics.countExceeded(h, d, buf.Views)
	wait := int64(0)
	status, contentType := http.StatusOK, respond.PlainJSON
	if !d.Allowed {
		status, contentType, wait = denied, respond.ProblemJSON, d.RetryAfter()
	}
	buf.QuotaHeaders(w.Header(), s.options.ResetStyle, d.At, wait)
	buf.B = respond.AppendDecision(buf.B[:0], &h.Subject, d, buf.Views, wait, status)
	return respond.Write(w, status, contentType, buf.B)
}
