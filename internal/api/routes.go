package api

import (
	"net/http"
	"reflect"

	"quotad/internal/plans"
)

const (
	hitsPattern         = "/v1/hits"
	reservationsPattern = "/v1/reservations"
)

// A route is one operation, and how it is served.
type route struct {
	operation

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
		return rt.access == backends || rt.access == everyScope
	case plans.ScopeRead:
		return rt.access == readers || rt.access == everyScope
	}
	return false
}

// operations are what the documentation says of routes.
func operations(list []route) []operation {
	described := make([]operation, len(list))
	for i := range list {
		described[i] = list[i].operation
	}
	return described
}

var attributeParam = param{
	name: "attr.NAME", names: "attr.", kind: "string",
	doc: "The value of the attribute NAME, such as attr.ip=192.0.2.1, whose buckets are shown for limits per that attribute; those of the empty value when left out. At most 16.",
}

var paging = []param{
	{name: "limit", kind: "integer", doc: "How many items a page has at most; 100 when left out.", most: plans.MaxPage},
	{name: "cursor", kind: "string", doc: "The next_cursor of the page before."},
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
		if separateMetrics && r.pattern == "/metrics" {
			continue
		}
		list = append(list, r)
	}
	return list
}

func backendRoutes() []route {
	charging := []*kind{kindNotFound, kindNotInPlan, kindIDReused, kindUnderWay}
	return []route{
		{operation: operation{
			method: "POST", pattern: hitsPattern, access: backends, tag: "Backends", id: "hit", summary: "Consume units",
			doc:     "Decides whether the customer may consume cost units of the meter now, and charges all limits of the meter, or none. With an id the hit is charged once, however often it is sent, to whatever node: once it was admitted, the same answer is given again with replayed true, for as long as ids are kept; a refused one is judged anew. An unknown customer is 404; where the service has a default plan, its first hit makes it, anonymous, and 503 too-busy is the answer to more than 64 at once. 429 is a refusal (403 or 200 with deny_status), and charges nothing. Headers: Retry-After is when this hit would be admitted; X-RateLimit-Limit, -Remaining and -Reset are of the limit with the least remaining, Reset being when its whole quota is there again; RateLimit and RateLimit-Policy (IETF draft 10) have all limits, or the first ones when those of long names would make more than 3,500 bytes; the body has all.",
			params:  []param{denyStatusParam},
			request: reflect.TypeFor[hitRequest](), response: reflect.TypeFor[decisionBody](), refusable: true, status: ok200, problems: charging, idHeader: idempotencyHeader,
		}, raw: (*Server).hits},
		{operation: operation{
			method: "POST", pattern: "/v1/hits/batch", access: backends, tag: "Backends", id: "hitBatch", summary: "Consume units many times",
			doc:     "Up to 1000 hits, each decided for itself, those of one customer, meter and attributes in the given order. Every result is a decision, a refusal, or the problem of its hit. With atomic true all are charged or none, whatever their customers and meters: if one is refused every result says allowed false, and the detail of those that would have been admitted says so: send it again after the longest retry_after_ms of all results at the earliest, and not at all where one is null. A hit that is wrong itself, or has no such customer or meter, is a 422 of the whole batch; an outage is a 503, whatever limits say. With the header Idempotency-Key each hit that has no id of its own is charged once under that key and its place in the batch. A node works on 64 batches at once; beyond them it answers 503 too-busy.",
			request: reflect.TypeFor[batchBody](), response: reflect.TypeFor[batchResults](), status: ok200, problems: charging, idHeader: idempotencyHeader,
		}, raw: (*Server).hitsBatch},
		{operation: operation{
			method: "POST", pattern: "/v1/refunds", access: backends, tag: "Backends", id: "refund", summary: "Give units back",
			doc:     "Gives units back: with hit to the windows that this hit was charged to, as far as they still run, and never more than it was charged in all its refunds; else to the present ones. What an allocation holds is released so. used never falls below 0. Usage falls by the same, in the hour in which it was booked, or by an adjustment when that billing period is over. refunded says how many units it was; an id is required, so that a refund that is sent again is done once. Hits that have only the Idempotency-Key of their batch cannot be named by hit. The plan may have lost the meter; nobody is made by this. An outage is a 503, whatever limits say.",
			request: reflect.TypeFor[refundRequest](), response: reflect.TypeFor[refundBody](), status: ok200, problems: []*kind{kindNotFound, kindIDReused, kindUnderWay}, idHeader: idempotencyHeader,
		}, raw: (*Server).refund},
		{operation: operation{
			method: "GET", pattern: "/v1/customers/{key}/quota", access: everyScope, tag: "Backends", id: "quota", summary: "What a customer has left",
			doc:      "All limits of the customer's plan as they stand, and the usage of each meter in the running billing period. Free of charge. Where the service has a default plan, an unknown customer has what its first hit would find, and is not made.",
			params:   []param{attributeParam},
			response: reflect.TypeFor[quotaBody](), status: ok200, problems: []*kind{kindNotFound},
		}, handle: (*Server).quota},
		{operation: operation{
			method: "GET", pattern: "/v1/customers/{key}/usage", access: everyScope, tag: "Backends", id: "usage", summary: "What a customer used",
			doc:      "Admitted and denied units by hour, day or month of the customer's timezone; at most 10,000 points. admitted is exact; denied is a statistic of units, and lags by up to a second. Usage is kept by the hour: from and to are widened to whole hours, and the first and last point count only their hours within.",
			params:   usageParams,
			response: reflect.TypeFor[usageBody](), status: ok200, problems: []*kind{kindNotFound},
		}, handle: (*Server).usage},
	}
}

var denyStatusParam = param{name: "deny_status", kind: "string", doc: "The status of a refusal.", enum: []string{"200", "403", "429"}}

func reservationRoutes() []route {
	const one = reservationsPattern + "/{id}"
	return []route{
		{operation: operation{
			method: "POST", pattern: reservationsPattern, access: backends, tag: "Backends", id: "reserve", summary: "Hold units until their cost is known",
			doc:     "For what is known only afterwards, as tokens, bytes and seconds are, and for concurrency limits. All limits of the meter are charged now, or none, and 429 is a refusal as that of a hit; usage is booked at commit. What is held shows as reserved beside used, counts no more once ttl_ms have passed, whoever looks, and is given back by release or by a commit with less. A customer may have 10,000 reservations open on a meter. An outage is a 503, whatever limits say.",
			params:  []param{denyStatusParam},
			request: reflect.TypeFor[reservationRequest](), response: reflect.TypeFor[reservationBody](), refusable: true, status: created201,
			problems: []*kind{kindNotFound, kindNotInPlan, kindIDReused, kindUnderWay, kindConflict}, idHeader: idempotencyHeader,
		}, raw: (*Server).reserve},
		{operation: operation{
			method: "POST", pattern: one + "/commit", access: backends, tag: "Backends", id: "commit", summary: "Charge what a reservation was for",
			doc:     "Books cost units as usage. With less than was reserved the rest is given back. More, or all of it when the reservation has expired (late), is charged now if it fits, else it is 409 does-not-fit and nothing changes. The same commit sent again is answered again, with replayed true; another cost is 409.",
			request: reflect.TypeFor[commitRequest](), response: reflect.TypeFor[commitBody](), doesNotFit: reflect.TypeFor[noRoomBody](), status: ok200, problems: []*kind{kindNotFound, kindConflict},
		}, raw: (*Server).commit},
		{operation: operation{
			method: "DELETE", pattern: one, access: backends, tag: "Backends", id: "release", summary: "Give a reservation back",
			doc: "Nothing is booked. The same again, or after it has expired, is 204, too; 409 when it was committed.", status: done204, problems: []*kind{kindNotFound, kindConflict},
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
	missing := []*kind{kindNotFound}
	meter := reflect.TypeFor[meterBody]()
	return []route{
		{operation: operation{
			method: "PUT", pattern: "/v1/meters/{key}", access: adminOnly, tag: "Meters", id: "putMeter", summary: "Declare a meter",
			doc:     "Declares what is counted, or gives it another unit or name.",
			request: reflect.TypeFor[meterRequest](), response: meter, status: put200or201,
		}, handle: (*Server).putMeter},
		{operation: operation{
			method: "GET", pattern: "/v1/meters/{key}", access: readers, tag: "Meters", id: "getMeter", summary: "One meter",
			response: meter, status: ok200, problems: missing,
		}, handle: (*Server).getMeter},
		{operation: operation{
			method: "GET", pattern: "/v1/meters", access: readers, tag: "Meters", id: "listMeters", summary: "All meters, by key",
			params: paging, response: reflect.TypeFor[listBody[meterBody]](), status: ok200,
		}, handle: (*Server).listMeters},
	}
}

func planRoutes() []route {
	missing := []*kind{kindNotFound}
	plan, plansPage := reflect.TypeFor[plans.Plan](), reflect.TypeFor[listBody[plans.Plan]]()
	return []route{
		{operation: operation{
			method: "PUT", pattern: "/v1/plans/{key}", access: adminOnly, tag: "Plans", id: "putPlan", summary: "Write a version of a plan",
			doc:     "Writes a new immutable version. On an existing plan If-Match with its ETag is required; If-None-Match: * writes only a plan that is new. With apply_to all (default) its limits count at once for every customer on the plan that is not pinned; with new only for customers who join later. What is as the newest version already writes none: the answer is 200 with its ETag.",
			request: reflect.TypeFor[plans.PlanInput](), response: plan, status: put200or201, problems: preconditions,
		}, handle: (*Server).putPlan},
		{operation: operation{
			method: "GET", pattern: "/v1/plans/{key}", access: readers, tag: "Plans", id: "getPlan", summary: "The newest version of a plan",
			response: plan, status: ok200, problems: missing,
		}, handle: (*Server).getPlan},
		{operation: operation{
			method: "GET", pattern: "/v1/plans", access: readers, tag: "Plans", id: "listPlans", summary: "All plans, by key",
			params: paging, response: plansPage, status: ok200,
		}, handle: (*Server).listPlans},
		{operation: operation{
			method: "GET", pattern: "/v1/plans/{key}/versions", access: readers, tag: "Plans", id: "listVersions", summary: "All versions of a plan",
			params: paging, response: plansPage, status: ok200, problems: missing,
		}, handle: (*Server).listVersions},
		{operation: operation{
			method: "GET", pattern: "/v1/plans/{key}/versions/{n}", access: readers, tag: "Plans", id: "getVersion", summary: "One version of a plan",
			response: plan, status: ok200, problems: missing,
		}, handle: (*Server).getVersion},
	}
}

func customerRoutes() []route {
	missing := []*kind{kindNotFound}
	customer := reflect.TypeFor[customerBody]()
	return []route{
		{operation: operation{
			method: "PUT", pattern: "/v1/customers/{key}", access: adminOnly, tag: "Customers", id: "putCustomer", summary: "Write a customer",
			doc:     "Makes a customer, or replaces what is known of one; then If-Match with its ETag is required; If-None-Match: * writes only one that is new. What changes nothing writes nothing: its ETag stays. An anonymous customer, made by its first hit on the default plan, needs no If-Match; it is a named one afterwards, and what it has used stays used. Another plan's limits count at once. Keys that begin with erased: are those of erased customers, and no others.",
			request: reflect.TypeFor[customerRequest](), response: customer, status: put200or201, problems: append([]*kind{kindConflict}, preconditions...),
		}, handle: (*Server).putCustomer},
		{operation: operation{
			method: "GET", pattern: "/v1/customers/{key}", access: readers, tag: "Customers", id: "getCustomer", summary: "One customer",
			response: customer, status: ok200, problems: missing,
		}, handle: (*Server).getCustomer},
		{operation: operation{
			method: "GET", pattern: "/v1/customers", access: readers, tag: "Customers", id: "listCustomers", summary: "All customers, by key",
			params: paging, response: reflect.TypeFor[listBody[customerBody]](), status: ok200,
		}, handle: (*Server).listCustomers},
		{operation: operation{
			method: "DELETE", pattern: "/v1/customers/{key}", access: adminOnly, tag: "Customers", id: "archiveCustomer", summary: "Archive a customer",
			doc:      "Hits of an archived customer are 404; its usage stays. With erase=true, also later, what identifies a person is removed: name, metadata, features, overrides and the key, which becomes erased: and a number. The answer is then 200 with what is left, and the new key, under which usage and the customer are read from now on; keep it. The old key is 404 and free for another. Within about a minute no table names it; backups and logs are yours to look after.",
			params:   []param{{name: "erase", kind: "boolean", doc: "true also removes what identifies a person; there is no way back."}},
			response: customer, status: []int{http.StatusOK, http.StatusNoContent}, problems: missing,
		}, handle: (*Server).archiveCustomer},
	}
}

func overrideRoutes() []route {
	missing := []*kind{kindNotFound}
	override := reflect.TypeFor[overrideBody]()
	const ofLimit = "/v1/customers/{key}/overrides/{limit}"
	return []route{
		{operation: operation{
			method: "PUT", pattern: ofLimit, access: adminOnly, tag: "Customers", id: "putOverride", summary: "Override a limit for a customer",
			doc:     "Gives the customer other numbers for a limit of the plan version in force for it, or replaces them, without a precondition. They count on every node within a second and let in at once what they newly allow; what was used stays used. They are checked as a plan's. They stay when the plan changes, and are without effect while its version in force does not have the limit. The customer's ETag changes with each of its overrides, also when one expires.",
			request: reflect.TypeFor[overrideRequest](), response: override, status: put200or201, problems: []*kind{kindNotFound, kindConflict},
		}, handle: (*Server).putOverride},
		{operation: operation{
			method: "DELETE", pattern: ofLimit, access: adminOnly, tag: "Customers", id: "deleteOverride", summary: "End an override",
			doc: "The plan's own numbers count again, on every node within a second.", status: done204, problems: []*kind{kindNotFound, kindConflict},
		}, handle: (*Server).deleteOverride},
		{operation: operation{
			method: "GET", pattern: "/v1/customers/{key}/overrides", access: readers, tag: "Customers", id: "listOverrides", summary: "A customer's overrides, by limit",
			doc:    "One that has expired is removed within a second; with a test clock it stays, and counts whenever the clock shows an earlier instant.",
			params: paging, response: reflect.TypeFor[listBody[overrideBody]](), status: ok200, problems: missing,
		}, handle: (*Server).listOverrides},
	}
}

func keyRoutes() []route {
	return []route{
		{operation: operation{
			method: "POST", pattern: "/v1/keys", access: adminOnly, tag: "Keys", id: "createKey", summary: "Make a key",
			doc:     "The secret is in this answer and nowhere else: only its hash is kept.",
			request: reflect.TypeFor[keyRequest](), response: reflect.TypeFor[newKeyBody](), status: created201,
		}, handle: (*Server).createKey},
		{operation: operation{
			method: "GET", pattern: "/v1/keys", access: adminOnly, tag: "Keys", id: "listKeys", summary: "All keys, without their secrets",
			params: paging, response: reflect.TypeFor[listBody[KeyBody]](), status: ok200,
		}, handle: (*Server).listKeys},
		{operation: operation{
			method: "DELETE", pattern: "/v1/keys/{id}", access: adminOnly, tag: "Keys", id: "revokeKey", summary: "Revoke a key",
			doc: "The key stops working on every node within a second.", status: done204, problems: []*kind{kindNotFound},
		}, handle: (*Server).revokeKey},
	}
}

func serviceRoutes() []route {
	return []route{
		{operation: operation{
			method: "GET", pattern: "/livez", tag: "Service", id: "livez", summary: "Whether the process runs",
			response: reflect.TypeFor[healthBody](), status: ok200,
		}, handle: (*Server).livez},
		{operation: operation{
			method: "GET", pattern: "/readyz", tag: "Service", id: "readyz", summary: "Whether to send requests here",
			doc:      "503 before the first contact with the database and while stopping; 200 with status degraded in an outage, so that what may be let in then is.",
			response: reflect.TypeFor[healthBody](), status: ok200, problems: []*kind{kindNotReady},
		}, handle: (*Server).readyz},
		{operation: operation{method: "GET", pattern: "/", tag: "Service", id: "root", summary: "To the documentation", status: []int{http.StatusFound}}, raw: (*Server).toDocs},
		{operation: operation{method: "GET", pattern: "/metrics", tag: "Service", id: "metrics", summary: "Metrics for Prometheus", media: "text/plain", status: ok200}, raw: (*Server).serveMetrics},
		{operation: operation{method: "GET", pattern: "/openapi.json", tag: "Service", id: "openapi", summary: "This document", media: "application/json", status: ok200}, raw: (*Server).serveOpenAPI},
		{operation: operation{method: "GET", pattern: "/docs", tag: "Service", id: "docs", summary: "This document as a page", media: "text/html", status: ok200}, raw: (*Server).serveDocs},
		{operation: operation{method: "GET", pattern: "/problems/{name}", tag: "Service", id: "problem", summary: "What a problem type means", media: "text/html", status: ok200, problems: []*kind{kindNotFound}}, raw: (*Server).serveProblem},
	}
}

// preconditions are what If-Match brings with it.
var preconditions = []*kind{kindPrecondition, kindPreconditionRequired}
