package hits

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// AuthorizePattern is the route that gateways call before they forward a request. The rest of a path below it is
// ignored, because Envoy appends the path of the client's request.
const AuthorizePattern = "/v1/authorize"

// The headers of AuthorizePattern, in canonical form. Gateways set them. A gateway's client may send these
// headers, too, so a header is ignored if the query contains its value.
const (
	keyHeader      = "X-Quotad-Key"
	customerHeader = "X-Quotad-Customer"
	meterHeader    = "X-Quotad-Meter"
	costHeader     = "X-Quotad-Cost"
	idHeader       = "X-Quotad-Id"
	attrHeader     = "X-Quotad-Attr-"
	reasonHeader   = "X-Quotad-Reason"
	detailHeader   = "X-Quotad-Detail"
)

// GatewayHeaders lists the headers of AuthorizePattern whose values differ from request to request.
var GatewayHeaders = []string{customerHeader, costHeader, idHeader, attrHeader + "Ip"}

// Asks reports whether a request belongs to AuthorizePattern.
func Asks(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, AuthorizePattern) && (len(r.URL.Path) == len(AuthorizePattern) || r.URL.Path[len(AuthorizePattern)] == '/')
}

// AsksAgain reports whether gateways usually repeat such a request: a GET, HEAD or POST of exactly
// AuthorizePattern.
func AsksAgain(r *http.Request) bool {
	return r.URL.Path == AuthorizePattern && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost)
}

// ForGateways passes requests of AuthorizePattern to its route. Below the pattern, Envoy appends the client's
// path and query. For such requests, the meter in a header takes precedence over the query, which is then
// ignored.
func ForGateways(route http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Path) > len(AuthorizePattern) && len(r.Header[meterHeader]) > 0 {
			asked := *r
			asked.URL = &url.URL{Path: AuthorizePattern}
			r = &asked
		}
		route.ServeHTTP(w, r)
	})
}

// authorize serves AuthorizePattern.
func (s *Room) authorize(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	denied, err := denyStatusOf(p.Query)
	var h hit
	if err == nil {
		h, err = gatewayHit(r.Header, p.Query)
	}
	if err != nil {
		return s.hitFailed(w, r, err)
	}
	ctx := s.waits.until(r.Context())
	defer ctx.end()
	d, err := s.decide(ctx, s.Engine.From(p.From), &h)
	if err != nil {
		err = serve.Explain(err, h.names())
		reason := reasonOf(err)
		if reason == "" {
			return s.hitFailed(w, r, err)
		}
		s.failed(err, 1)
		f := *problem.Of(err)
		s.LogInternal(w, r, &f, err)
		s.refusals.Do(func() {
			s.Log.Info("a gateway was refused", "request_id", serve.RequestID(w), "reason", reason, "why", f.Detail)
		})
		kind := *f.Kind
		kind.Status, f.Kind, f.Detail = denied, &kind, publicDetail(reason, err)
		tellGateway(w, reason, f.Detail)
		return problem.Write(w, &f)
	}
	if !d.Allowed {
		tellGateway(w, "quota", respond.Why(&h.Subject, &d))
		return s.answerHit(w, &h, &d, denied, buf)
	}
	s.tellLimits(w, &h, &d, buf)
	return respond.Write(w, http.StatusOK, emptyText, nil)
}

var emptyText = []string{"text/plain; charset=utf-8"}

// reasonOf returns the reason for which a gateway must refuse a request that no limit could decide. It returns
// "" if the error is a fault of the gateway's configuration or of quotad.
func reasonOf(err error) string {
	if errors.Is(err, plans.ErrUnknownCustomer) {
		return "unknown-customer"
	}
	return reasons[problem.Of(err).Kind]
}

// reasons contains the problems that a gateway treats as refusals, except an unknown customer.
var reasons = map[*problem.Kind]string{
	problem.KindNotInPlan: "not-in-plan", problem.KindSuspended: "suspended", problem.KindEnded: "ended",
	problem.KindUnavailable: "outage", problem.KindNoSession: "outage", problem.KindReadOnly: "outage", problem.KindOutcomeUnknown: "outage",
}

// publicDetail returns a sentence about a refusal for the customer. Many gateways forward a refusal to their
// client, so the sentence contains no key, route or plan name. For a suspension the sentence is the recorded
// reason.
func publicDetail(reason string, err error) string {
	if suspended, ok := errors.AsType[*plans.SuspendedError](err); ok && suspended.Reason != "" {
		return suspended.Reason
	}
	switch reason {
	case "unknown-customer":
		return "This customer is not known here."
	case "not-in-plan":
		return "Your plan does not include this."
	case "suspended":
		return "Your account is suspended."
	case "ended":
		return "Your subscription has ended."
	}
	return "This cannot be decided at the moment. Try again later."
}

// tellGateway writes the reason of a refusal into headers, because many gateways forward only headers.
func tellGateway(w http.ResponseWriter, reason, detail string) {
	w.Header()[reasonHeader] = []string{reason}
	w.Header()[detailHeader] = []string{respond.FieldText(detail)}
}

// gateway reads a gateway's request and keeps the first fault.
type gateway struct {
	headers http.Header
	in      client.HitRequest
	err     error
}

// header returns the value of a header that occurs once. If a header occurs twice, one value may be the
// client's.
func (g *gateway) header(name string) (value string, given bool) {
	all := g.headers[name]
	if len(all) > 1 && g.err == nil {
		g.err = problem.Invalid(name, "is there more than once: the gateway must replace what clients send")
	}
	if len(all) == 0 {
		return "", false
	}
	return all[0], true
}

func (g *gateway) cost(field, text string) {
	cost, err := strconv.ParseInt(text, 10, 64)
	if (err != nil || strconv.FormatInt(cost, 10) != text) && g.err == nil {
		g.err = problem.Invalid(field, fmt.Sprintf("must be between 0 and %d, in digits", model.MaxNumber))
	}
	g.in.Cost = &cost
}

func (g *gateway) id() {
	if id, given := g.header(idHeader); given {
		g.in.ID = &id
	}
}

func (g *gateway) attribute(name, header string) {
	value, given := g.header(header)
	if !given && g.err == nil {
		g.err = problem.Invalid(header, "is required: attrs names it")
	}
	if g.in.Attributes == nil {
		g.in.Attributes = make(map[string]string)
	}
	g.in.Attributes[name] = value
}

// byQuery reads a query with a meter. It uses the header of the customer and the headers that the query names,
// and ignores all other headers.
func (g *gateway) byQuery(q request.Query) {
	g.in.Meter = q["meter"]
	if cost, given := q["cost"]; given {
		g.cost("cost", cost)
	}
	if where, given := q["id"]; given && where != "header" {
		g.err = cmp.Or(g.err, error(problem.Invalid("id", "must be header: the id is the value of "+idHeader)))
	} else if given {
		g.id()
	}
	if names, given := q["attrs"]; given {
		for name := range strings.SplitSeq(names, ",") {
			g.attribute(name, http.CanonicalHeaderKey(attrHeader+name))
		}
	}
}

// byHeaders reads a request that specifies everything in headers.
func (g *gateway) byHeaders(q request.Query) {
	for _, name := range []string{"attrs", "cost", "id"} {
		if _, given := q[name]; given && g.err == nil {
			g.err = problem.Invalid(name, "goes with meter in the query. Without meter there, headers X-Quotad-* say it")
		}
	}
	g.in.Meter, _ = g.header(meterHeader)
	if cost, given := g.header(costHeader); given {
		g.cost(costHeader, cost)
	}
	g.id()
	for header := range g.headers {
		if name, is := strings.CutPrefix(header, attrHeader); is {
			g.attribute(strings.ToLower(name), header)
		}
	}
}

// gatewayHit returns the hit that a gateway requests. Errors name the header or the query parameter.
func gatewayHit(headers http.Header, q request.Query) (hit, error) {
	g := gateway{headers: headers}
	fields := map[string]string{"customer": customerHeader, "meter": meterHeader, "cost": costHeader, "id": idHeader}
	g.in.Customer, _ = g.header(customerHeader)
	if _, given := q["meter"]; given {
		g.byQuery(q)
		fields["meter"], fields["cost"] = "meter", "cost"
	} else {
		g.byHeaders(q)
	}
	if g.err != nil {
		return hit{}, g.err
	}
	bad := request.CheckHit(&g.in, 0)
	for i := range bad {
		name, isAttribute := strings.CutPrefix(bad[i].Field, "attributes.")
		if bad[i].Field = cmp.Or(fields[name], bad[i].Field); isAttribute {
			bad[i].Field = attrHeader + name
		}
	}
	if len(bad) > 0 {
		return hit{}, problem.InvalidFields(bad)
	}
	h := askedOf(&g.in, request.OpHit)
	h.Public = true // many gateways forward a refusal to their client
	return h, nil
}

// authorizeRoute returns the route of AuthorizePattern for all methods.
func (s *Room) authorizeRoute() serve.Route {
	why := []string{reasonHeader, detailHeader}
	return serve.Route{Operation: apidoc.Operation{
		Method: "GET", Pattern: AuthorizePattern, Access: apidoc.Backends, KeyHeader: keyHeader, Tag: "Backends", ID: "hits.authorize", Summary: "Decide for a gateway",
		Params: []apidoc.Param{
			{Name: "meter", Type: "string", Doc: "The meter. With it, no header but " + customerHeader + " counts that the query does not name."},
			{Name: "cost", Type: "integer", Doc: "How many units. 1 when left out.", Most: model.MaxNumber},
			{Name: "attrs", Type: "string", Doc: "Names of attributes, separated by commas. The value of ip is in " + attrHeader + "Ip."},
			{Name: "id", Type: "string", Doc: "header: " + idHeader + " is the idempotency key.", Enum: []string{"header"}},
			denyStatusParam,
		},
		Headers: []apidoc.Param{
			{Name: keyHeader, Type: "string", Doc: "The API key, in place of Authorization. It counts where both are there."},
			{Name: customerHeader, Type: "string", Required: true, Doc: "The customer."},
			{Name: meterHeader, Type: "string", Doc: "The meter, without one in the query."},
			{Name: costHeader, Type: "integer", Most: model.MaxNumber, Doc: "How many units, without a meter in the query. 1 when left out."},
			{Name: idHeader, Type: "string", Doc: "The idempotency key, without a meter in the query, or with id=header."},
		},
		Refusable: true, Media: emptyText[0], Status: serve.OK200, Problems: []*problem.Kind{
			problem.KindNotFound, problem.KindIDReused,
			problem.KindRefunded, problem.KindUnderWay, problem.KindOutcomeUnknown,
		},
		RefusedBy: append(slices.Collect(maps.Keys(reasons)), problem.KindNotFound),
		Sends:     map[int][]string{http.StatusOK: why, http.StatusForbidden: why, http.StatusTooManyRequests: why},
	}, Raw: s.authorize}
}
