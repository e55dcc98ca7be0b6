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

// AuthorizePattern is the route that gateways ask before they pass a request on. What follows it in a path
// is ignored, as Envoy appends the path of the request that it asks about.
const AuthorizePattern = "/v1/authorize"

// The headers of AuthorizePattern, in canonical form. A gateway sets them. Its clients may send them, too,
// so none is believed that the query makes needless.
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

// GatewayHeaders are those of them whose values differ from request to request.
var GatewayHeaders = []string{customerHeader, costHeader, idHeader, attrHeader + "Ip"}

// Asks reports whether a request is one of AuthorizePattern.
func Asks(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, AuthorizePattern) && (len(r.URL.Path) == len(AuthorizePattern) || r.URL.Path[len(AuthorizePattern)] == '/')
}

// AsksAgain reports whether a request is one that a gateway sends again and again: of one path, and GET,
// HEAD or POST.
func AsksAgain(r *http.Request) bool {
	return r.URL.Path == AuthorizePattern && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost)
}

// ForGateways hands requests of AuthorizePattern to its route. Below it the path and the query are the
// client's, as Envoy appends both. So the header says the meter there, if it does, and the query nothing.
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

// reasonOf is why a gateway is to refuse a request that could not be decided by limits; "": it is no
// refusal, but a fault of the gateway's configuration, or one here.
func reasonOf(err error) string {
	if errors.Is(err, plans.ErrUnknownCustomer) {
		return "unknown-customer"
	}
	return reasons[problem.Of(err).Kind]
}

// reasons are the problems that are refusals for a gateway, besides an unknown customer.
var reasons = map[*problem.Kind]string{
	problem.KindNotInPlan: "not-in-plan", problem.KindSuspended: "suspended", problem.KindEnded: "ended",
	problem.KindUnavailable: "outage", problem.KindNoSession: "outage", problem.KindReadOnly: "outage", problem.KindOutcomeUnknown: "outage",
}

// publicDetail returns a sentence about a refusal for the customer. Many gateways pass a refusal on to their
// client, so the sentence contains no key, no route and no plan's name. Of a suspension it is the reason that
// was given.
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

// tellGateway writes into headers why a request is refused. Many gateways hand on headers alone.
func tellGateway(w http.ResponseWriter, reason, detail string) {
	w.Header()[reasonHeader] = []string{reason}
	w.Header()[detailHeader] = []string{respond.FieldText(detail)}
}

// gateway reads what a gateway asks, and keeps the first fault.
type gateway struct {
	headers http.Header
	in      client.HitRequest
	err     error
}

// header is the value of a header that comes once. Of two, one may be the client's.
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

// byQuery reads a query that has a meter. Of the headers it believes the customer, and what it names.
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

// byHeaders reads headers that say all.
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

// gatewayHit is the hit that a gateway asks about. Errors name the header, or the parameter.
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
	h.Public = true // many gateways pass a refusal on to their client
	return h, nil
}

// authorizeRoute is the route of AuthorizePattern, for any method.
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
