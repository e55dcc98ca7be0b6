package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"quotad/internal/plans"
	"quotad/internal/quota"
)

// hitRequest is the body of POST /v1/hits and one member of a batch.
type hitRequest struct {
	Customer   string            `json:"customer" minLength:"1" maxLength:"200" pattern:"^[ -.0-~]+$" doc:"The customer's key."`
	Meter      string            `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key."`
	Cost       *int64            `json:"cost,omitempty" minimum:"0" maximum:"999999999999999" default:"1" doc:"Units to consume. 0 looks: it always passes and charges nothing."`
	Attributes map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"What limits per attribute look at, by the attribute's name: at most 16 names of 1 to 64 letters, digits or . _ : - with values of at most 200 bytes. Those that no limit is per have no effect."`
	ID         *string           `json:"id,omitempty" doc:"Not supported yet: leave it out."`
	DryRun     bool              `json:"dry_run,omitempty" default:"false" doc:"Judge the hit and charge nothing."`
}

// A hit is a checked hitRequest.
type hit struct {
	customer, meter string
	cost            int64
	attributes      map[string]string
	dryRun          bool
}

// look reports whether the hit charges nothing, whatever comes of it.
func (h *hit) look() bool { return h.dryRun || h.cost == 0 }

// notYet is said of what the contract has and this version has not, since to ignore it
// would be to do something else than was asked.
const notYet = "is not supported yet: leave it out"

// decodeHit reads and checks one hit.
func decodeHit(body []byte) (hit, error) {
	var in hitRequest
	if err := decode(body, &in); err != nil {
		return hit{}, err
	}
	if bad := in.check(); len(bad) > 0 {
		return hit{}, invalidFields(bad)
	}
	h := hit{customer: in.Customer, meter: in.Meter, cost: 1, attributes: in.Attributes, dryRun: in.DryRun}
	if in.Cost != nil {
		h.cost = *in.Cost
	}
	return h, nil
}

// check lists all that is wrong with a well-formed hit.
func (in *hitRequest) check() (bad quota.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, quota.FieldError{Field: field, Detail: detail}) }
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
	if in.Cost != nil && (*in.Cost < 0 || *in.Cost > quota.MaxNumber) {
		refuse("cost", "must be between 0 and "+strconv.FormatInt(quota.MaxNumber, 10))
	}
	if in.ID != nil {
		refuse("id", notYet)
	}
	return append(bad, checkAttributes(in.Attributes, "attributes")...)
}

// checkAttributes lists what is wrong with attributes, in the order of their names; parent
// is where they stand. A value becomes part of a counter's key.
func checkAttributes(attributes map[string]string, parent string) (bad quota.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, quota.FieldError{Field: field, Detail: detail}) }
	if len(attributes) > quota.MaxAttributes {
		refuse(parent, fmt.Sprintf("must not have more than %d names", quota.MaxAttributes))
		return bad
	}
	for name, value := range attributes {
		if len(name) > quota.MaxAttributeName || !plans.ValidKey(name) {
			refuse(parent+"."+name, "the name must be 1 to 64 letters, digits or . _ : -")
		}
		switch {
		case len(value) > quota.MaxAttributeValue:
			refuse(parent+"."+name, "the value must not have more than 200 bytes")
		case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
			refuse(parent+"."+name, "the value must be UTF-8 without NUL characters")
		}
	}
	slices.SortStableFunc(bad, func(a, b quota.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return bad
}

// refuseIdempotencyKey: to ignore it would charge a retry twice.
func refuseIdempotencyKey(h http.Header) error {
	if len(h["Idempotency-Key"]) > 0 {
		return invalid("Idempotency-Key", notYet)
	}
	return nil
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
	return 0, invalid("deny_status", "must be 200, 403 or 429")
}

// hits serves POST /v1/hits. Nothing in it is done by reflection but the decoding.
func (s *Server) hits(w http.ResponseWriter, r *http.Request, q query) int {
	buf := getBuffer()
	defer putBuffer(buf)
	denied, err := q.denyStatus()
	if err == nil {
		err = refuseIdempotencyKey(r.Header)
	}
	var h hit
	if err == nil {
		if buf.b, err = readBody(r, buf.b[:0], maxBody); err == nil {
			h, err = decodeHit(buf.b)
		}
	}
	if err != nil {
		return s.hitFailed(w, r, err)
	}
	ctx := &deadline{request: r.Context(), after: s.options.Deadline}
	d, err := s.decide(ctx, &h)
	ctx.end()
	if err != nil {
		return s.hitFailed(w, r, explain(err, h.names()))
	}
	return s.answerHit(w, &h, &d, denied, buf)
}

// answerHit writes the decision of a single hit: 200, or the status of a refusal.
func (s *Server) answerHit(w http.ResponseWriter, h *hit, d *quota.Decision, denied int, buf *buffer) int {
	s.metrics.count(h, d)
	buf.views = appendViews(buf.views[:0], d)
	s.metrics.countExceeded(h, d, buf.views)
	wait := int64(0)
	status, contentType := http.StatusOK, plainJSON
	if !d.Allowed {
		status, contentType, wait = denied, problemJSON, d.RetryAfter()
	}
	buf.b = quotaHeaders(w.Header(), buf.views, s.options.ResetStyle, d.At, wait, buf.b)
	buf.b = appendDecision(buf.b[:0], h, d, buf.views, wait, status)
	return writeBody(w, status, contentType, buf.b)
}

// appendViews collects what a decision says of each limit; a degraded one says nothing.
func appendViews(views []quota.View, d *quota.Decision) []quota.View {
	if d.Degraded {
		return views
	}
	for i := range d.Target.NumLimits() {
		views = append(views, d.View(i))
	}
	return views
}
