package api

import (
	"net/http"
	"reflect"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
)

const (
	hitsPattern         = "/v1/hits"
	reservationsPattern = "/v1/reservations"
)

// A route is one operation, and how it is served.
type route struct {
	apidoc.Operation

	// One of the two. handle answers by values; raw writes for itself and returns the
	// status: the hit routes, and what is not JSON.
	handle func(*Server, *call) (answer, error)
	raw    func(*Server, http.ResponseWriter, *http.Request, query) int
}

// allows reports whether a key of that scope may call the route.
func (rt *route) allows(scope plans.Scope) bool {
	switch scope {
	case plans.ScopeAdmin:
		return true
	case plans.ScopeBackend:
		return rt.Access == apidoc.Backends || rt.Access == apidoc.EveryScope
	case plans.ScopeRead:
		return rt.Access == apidoc.Readers || rt.Access == apidoc.EveryScope
	}
	return false
}

// operations are what the documentation says of routes.
func operations(list []route) []apidoc.Operation {
	described := make([]apidoc.Operation, len(list))
	for i := range list {
		described[i] = list[i].Operation
	}
	return described
}

var attributeParam = apidoc.Param{
	Name: "attr.NAME", Names: "attr.", Type: "string",
	Doc: "The value of the attribute NAME, such as attr.ip=192.0.2.1, whose buckets are shown for limits per that attribute; those of the empty value when left out. At most 16.",
}

var paging = []apidoc.Param{
	{Name: "limit", Type: "integer", Doc: "How many items a page has at most; 100 when left out.", Most: plans.MaxPage},
	{Name: "cursor", Type: "string", Doc: "The next_cursor of the page before."},
}

var (
	ok200       = []int{http.StatusOK}
	created201  = []int{http.StatusCreated}
	put200or201 = []int{http.StatusOK, http.StatusCreated}
	done204     = []int{http.StatusNoContent}
)

// routes is every route of the API, in the order of the documentation.
func routes(separateMetrics bool) []route {
	list := append(backendRoutes(), reservationRoutes()...)
	list = append(list, adminRoutes()...)
	list = append(list, importRoutes()...)
	for _, r := range serviceRoutes() {
		if separateMetrics && r.Pattern == "/metrics" {
			continue
		}
		list = append(list, r)
	}
	return list
}

func backendRoutes() []route {
	charging := []*problem.Kind{problem.KindNotFound, problem.KindNotInPlan, problem.KindIDReused, problem.KindUnderWay}
	return []route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: hitsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "hit", Summary: "Consume units",
			Doc:     "Decides whether the customer may consume cost units of the meter now, and charges all limits of the meter, or none. With an id the hit is charged once, however often it is sent, to whatever node: once it was admitted, the same answer is given again with replayed true, for as long as ids are kept; a refused one is judged anew. An unknown customer is 404; where the service has a default plan, its first hit makes it, anonymous, and 503 too-busy is the answer to more than 64 at once. 429 is a refusal (403 or 200 with deny_status), and charges nothing. Headers: Retry-After is when this hit would be admitted; X-RateLimit-Limit, -Remaining and -Reset are of the limit with the least remaining, Reset being when its whole quota is there again; RateLimit and RateLimit-Policy (IETF draft 10) have all limits, or the first ones when those of long names would make more than 3,500 bytes; the body has all.",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[hitRequest](), Response: reflect.TypeFor[respond.Decision](), Refusable: true, Status: ok200, Problems: charging, IDHeader: idempotencyHeader,
		}, raw: (*Server).hits},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/hits/batch", Access: apidoc.Backends, Tag: "Backends", ID: "hitBatch", Summary: "Consume units many times",
			Doc:     "Up to 1000 hits, each decided for itself, those of one customer, meter and attributes in the given order. Every result is a decision, a refusal, or the problem of its hit. With atomic true all are charged or none, whatever their customers and meters: if one is refused every result says allowed false, and the detail of those that would have been admitted says so: send it again after the longest retry_after_ms of all results at the earliest, and not at all where one is null. A hit that is wrong itself, or has no such customer or meter, is a 422 of the whole batch; an outage is a 503, whatever limits say. With the header Idempotency-Key each hit that has no id of its own is charged once under that key and its place in the batch. A node works on 64 batches at once; beyond them it answers 503 too-busy.",
			Request: reflect.TypeFor[batchBody](), Response: reflect.TypeFor[batchResults](), Status: ok200, Problems: charging, IDHeader: idempotencyHeader,
		}, raw: (*Server).hitsBatch},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/refunds", Access: apidoc.Backends, Tag: "Backends", ID: "refund", Summary: "Give units back",
			Doc:     "Gives units back: with hit to the windows that this hit was charged to, as far as they still run, and never more than it was charged in all its refunds; else to the present ones. What an allocation holds is released so. used never falls below 0. Usage falls by the same, in the hour in which it was booked, or by an adjustment when that billing period is over. refunded says how many units it was; an id is required, so that a refund that is sent again is done once. Hits that have only the Idempotency-Key of their batch cannot be named by hit. The plan may have lost the meter; nobody is made by this. An outage is a 503, whatever limits say.",
			Request: reflect.TypeFor[refundRequest](), Response: reflect.TypeFor[refundBody](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound, problem.KindIDReused, problem.KindUnderWay}, IDHeader: idempotencyHeader,
		}, raw: (*Server).refund},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/quota", Access: apidoc.EveryScope, Tag: "Backends", ID: "quota", Summary: "What a customer has left",
			Doc:      "All limits of the customer's plan as they stand, and the usage of each meter in the running billing period. Free of charge. Where the service has a default plan, an unknown customer has what its first hit would find, and is not made.",
			Params:   []apidoc.Param{attributeParam},
			Response: reflect.TypeFor[quotaBody](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).quota},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/usage", Access: apidoc.EveryScope, Tag: "Backends", ID: "usage", Summary: "What a customer used",
			Doc:      "Admitted and denied units by hour, day or month of the customer's timezone; at most 10,000 points. admitted is exact; denied is a statistic of units, and lags by up to a second. Usage is kept by the hour: from and to are widened to whole hours, and the first and last point count only their hours within.",
			Params:   usageParams,
			Response: reflect.TypeFor[usageBody](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).usage},
	}
}

var denyStatusParam = apidoc.Param{Name: "deny_status", Type: "string", Doc: "The status of a refusal.", Enum: []string{"200", "403", "429"}}

func reservationRoutes() []route {
	const one = reservationsPattern + "/{id}"
	return []route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: reservationsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "reserve", Summary: "Hold units until their cost is known",
			Doc:     "For what is known only afterwards, as tokens, bytes and seconds are, and for concurrency limits. All limits of the meter are charged now, or none, and 429 is a refusal as that of a hit; usage is booked at commit. What is held shows as reserved beside used, counts no more once ttl_ms have passed, whoever looks, and is given back by release or by a commit with less. A customer may have 10,000 reservations open on a meter. An outage is a 503, whatever limits say.",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[reservationRequest](), Response: reflect.TypeFor[reservationBody](), Refusable: true, Status: created201,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindNotInPlan, problem.KindIDReused, problem.KindUnderWay, problem.KindConflict}, IDHeader: idempotencyHeader,
		}, raw: (*Server).reserve},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: one + "/commit", Access: apidoc.Backends, Tag: "Backends", ID: "commit", Summary: "Charge what a reservation was for",
			Doc:     "Books cost units as usage. With less than was reserved the rest is given back. More, or all of it when the reservation has expired (late), is charged now if it fits, else it is 409 does-not-fit and nothing changes. The same commit sent again is answered again, with replayed true; another cost is 409.",
			Request: reflect.TypeFor[commitRequest](), Response: reflect.TypeFor[commitBody](), DoesNotFit: reflect.TypeFor[noRoomBody](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, raw: (*Server).commit},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: one, Access: apidoc.Backends, Tag: "Backends", ID: "release", Summary: "Give a reservation back",
			Doc: "Nothing is booked. The same again, or after it has expired, is 204, too; 409 when it was committed.", Status: done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, handle: (*Server).release},
	}
}

func adminRoutes() []route {
	list := append(meterRoutes(), planRoutes()...)
	list = append(list, customerRoutes()...)
	list = append(list, overrideRoutes()...)
	list = append(list, adjustmentRoutes()...)
	list = append(list, clockRoutes()...)
	return append(list, keyRoutes()...)
}

func meterRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	meter := reflect.TypeFor[meterBody]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/meters/{key}", Access: apidoc.AdminOnly, Tag: "Meters", ID: "putMeter", Summary: "Declare a meter",
			Doc:     "Declares what is counted, or gives it another unit or name.",
			Request: reflect.TypeFor[meterRequest](), Response: meter, Status: put200or201,
		}, handle: (*Server).putMeter},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/meters/{key}", Access: apidoc.Readers, Tag: "Meters", ID: "getMeter", Summary: "One meter",
			Response: meter, Status: ok200, Problems: missing,
		}, handle: (*Server).getMeter},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/meters", Access: apidoc.Readers, Tag: "Meters", ID: "listMeters", Summary: "All meters, by key",
			Params: paging, Response: reflect.TypeFor[listBody[meterBody]](), Status: ok200,
		}, handle: (*Server).listMeters},
	}
}

func planRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	plan, plansPage := reflect.TypeFor[plans.Plan](), reflect.TypeFor[listBody[plans.Plan]]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/plans/{key}", Access: apidoc.AdminOnly, Tag: "Plans", ID: "putPlan", Summary: "Write a version of a plan",
			Doc:     "Writes a new immutable version. On an existing plan If-Match with its ETag is required; If-None-Match: * writes only a plan that is new. With apply_to all (default) its limits count at once for every customer on the plan that is not pinned; with new only for customers who join later. What is as the newest version already writes none: the answer is 200 with its ETag.",
			Request: reflect.TypeFor[plans.PlanInput](), Response: plan, Status: put200or201, Problems: preconditions,
		}, handle: (*Server).putPlan},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}", Access: apidoc.Readers, Tag: "Plans", ID: "getPlan", Summary: "The newest version of a plan",
			Response: plan, Status: ok200, Problems: missing,
		}, handle: (*Server).getPlan},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans", Access: apidoc.Readers, Tag: "Plans", ID: "listPlans", Summary: "All plans, by key",
			Params: paging, Response: plansPage, Status: ok200,
		}, handle: (*Server).listPlans},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}/versions", Access: apidoc.Readers, Tag: "Plans", ID: "listVersions", Summary: "All versions of a plan",
			Params: paging, Response: plansPage, Status: ok200, Problems: missing,
		}, handle: (*Server).listVersions},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}/versions/{n}", Access: apidoc.Readers, Tag: "Plans", ID: "getVersion", Summary: "One version of a plan",
			Response: plan, Status: ok200, Problems: missing,
		}, handle: (*Server).getVersion},
	}
}

func customerRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	customer := reflect.TypeFor[customerBody]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "putCustomer", Summary: "Write a customer",
			Doc:     "Makes a customer, or replaces what is known of one; then If-Match with its ETag is required; If-None-Match: * writes only one that is new. What changes nothing writes nothing: its ETag stays. An anonymous customer, made by its first hit on the default plan, needs no If-Match; it is a named one afterwards, and what it has used stays used. Another plan's limits count at once. Keys that begin with erased: are those of erased customers, and no others.",
			Request: reflect.TypeFor[customerRequest](), Response: customer, Status: put200or201, Problems: append([]*problem.Kind{problem.KindConflict}, preconditions...),
		}, handle: (*Server).putCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}", Access: apidoc.Readers, Tag: "Customers", ID: "getCustomer", Summary: "One customer",
			Response: customer, Status: ok200, Problems: missing,
		}, handle: (*Server).getCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers", Access: apidoc.Readers, Tag: "Customers", ID: "listCustomers", Summary: "All customers, by key",
			Params: paging, Response: reflect.TypeFor[listBody[customerBody]](), Status: ok200,
		}, handle: (*Server).listCustomers},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "archiveCustomer", Summary: "Archive a customer",
			Doc:      "Hits of an archived customer are 404; its usage stays. With erase=true, also later, what identifies a person is removed: name, metadata, features, overrides and the key, which becomes erased: and a number. The answer is then 200 with what is left, and the new key, under which usage and the customer are read from now on; keep it. The old key is 404 and free for another. Within about a minute no table names it; backups and logs are yours to look after.",
			Params:   []apidoc.Param{{Name: "erase", Type: "boolean", Doc: "true also removes what identifies a person; there is no way back."}},
			Response: customer, Status: []int{http.StatusOK, http.StatusNoContent}, Problems: missing,
		}, handle: (*Server).archiveCustomer},
	}
}

func overrideRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	override := reflect.TypeFor[overrideBody]()
	const ofLimit = "/v1/customers/{key}/overrides/{limit}"
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: ofLimit, Access: apidoc.AdminOnly, Tag: "Customers", ID: "putOverride", Summary: "Override a limit for a customer",
			Doc:     "Gives the customer other numbers for a limit of the plan version in force for it, or replaces them, without a precondition. They count on every node within a second and let in at once what they newly allow; what was used stays used. They are checked as a plan's. They stay when the plan changes, and are without effect while its version in force does not have the limit. The customer's ETag changes with each of its overrides, also when one expires.",
			Request: reflect.TypeFor[overrideRequest](), Response: override, Status: put200or201, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, handle: (*Server).putOverride},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: ofLimit, Access: apidoc.AdminOnly, Tag: "Customers", ID: "deleteOverride", Summary: "End an override",
			Doc: "The plan's own numbers count again, on every node within a second.", Status: done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, handle: (*Server).deleteOverride},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/overrides", Access: apidoc.Readers, Tag: "Customers", ID: "listOverrides", Summary: "A customer's overrides, by limit",
			Doc:    "One that has expired is removed within a second; with a test clock it stays, and counts whenever the clock shows an earlier instant.",
			Params: paging, Response: reflect.TypeFor[listBody[overrideBody]](), Status: ok200, Problems: missing,
		}, handle: (*Server).listOverrides},
	}
}

func keyRoutes() []route {
	return []route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "createKey", Summary: "Make a key",
			Doc:     "The secret is in this answer and nowhere else: only its hash is kept.",
			Request: reflect.TypeFor[keyRequest](), Response: reflect.TypeFor[newKeyBody](), Status: created201,
		}, handle: (*Server).createKey},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "listKeys", Summary: "All keys, without their secrets",
			Params: paging, Response: reflect.TypeFor[listBody[KeyBody]](), Status: ok200,
		}, handle: (*Server).listKeys},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/keys/{id}", Access: apidoc.AdminOnly, Tag: "Keys", ID: "revokeKey", Summary: "Revoke a key",
			Doc: "The key stops working on every node within a second.", Status: done204, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).revokeKey},
	}
}

func serviceRoutes() []route {
	return []route{
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/livez", Tag: "Service", ID: "livez", Summary: "Whether the process runs",
			Response: reflect.TypeFor[healthBody](), Status: ok200,
		}, handle: (*Server).livez},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/readyz", Tag: "Service", ID: "readyz", Summary: "Whether to send requests here",
			Doc:      "503 before the first contact with the database and while stopping; 200 with status degraded in an outage, so that what may be let in then is.",
			Response: reflect.TypeFor[healthBody](), Status: ok200, Problems: []*problem.Kind{problem.KindNotReady},
		}, handle: (*Server).readyz},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/", Tag: "Service", ID: "root", Summary: "To the documentation", Status: []int{http.StatusFound}}, raw: (*Server).toDocs},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/metrics", Tag: "Service", ID: "metrics", Summary: "Metrics for Prometheus", Media: "text/plain", Status: ok200}, raw: (*Server).serveMetrics},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/openapi.json", Tag: "Service", ID: "openapi", Summary: "This document", Media: "application/json", Status: ok200}, raw: (*Server).serveOpenAPI},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/docs", Tag: "Service", ID: "docs", Summary: "This document as a page", Media: "text/html", Status: ok200}, raw: (*Server).serveDocs},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/problems/{name}", Tag: "Service", ID: "problem", Summary: "What a problem type means", Media: "text/html", Status: ok200, Problems: []*problem.Kind{problem.KindNotFound}}, raw: (*Server).serveProblem},
	}
}

// preconditions are what If-Match brings with it.
var preconditions = []*problem.Kind{problem.KindPrecondition, problem.KindPreconditionRequired}
