package api

import (
	"net/http"
	"reflect"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/plans"
)

const (
	hitsPattern         = "/v1/hits"
	reservationsPattern = "/v1/reservations"
)

// A route is one operation, and how it is served.
type route struct {
	apidoc.Operation

	// Exactly one of these two is set. handle returns its answer as a value. raw writes the
	// answer itself and returns the status; the hit routes are raw, and routes whose answer is
	// not JSON.
	handle func(*Server, *call) (answer, error)
	raw    func(*Server, http.ResponseWriter, *http.Request, params) int

	// wait is how long an answer of handle may take; 0: the server's deadline.
	wait  time.Duration
	reads bool // it changes nothing, though it is no GET
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
	case plans.ScopeSupport:
		return rt.Access == apidoc.Readers || rt.Access == apidoc.EveryScope || rt.Access == apidoc.Supporters
	}
	return false
}

// operations are the parts of the routes that the documentation is made from.
func operations(list []route) []apidoc.Operation {
	described := make([]apidoc.Operation, len(list))
	for i := range list {
		described[i] = list[i].Operation
	}
	return described
}

var attributeParam = apidoc.Param{
	Name: "attr.NAME", Names: "attr.", Type: "string",
	Doc: "The value of the attribute NAME, such as `attr.ip=192.0.2.1`.\n\n- Limits per that attribute are shown by the buckets of this value.\n- When left out, they are shown by the buckets of the empty value.\n- A request may have at most 16.",
}

var paging = []apidoc.Param{
	{Name: "limit", Type: "integer", Doc: "How many items a page has at most. 100 when left out.", Most: plans.MaxPage},
	{Name: "cursor", Type: "string", Doc: "The `next_cursor` of the page before."},
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
	list = append(list, billingRoutes()...)
	list = append(list, paperRoutes()...)
	list = append(list, accountRoutes()...)
	list = append(list, portalRoutes()...)
	list = append(list, reconcileRoutes()...)
	list = append(list, overviewRoute())
	for _, r := range serviceRoutes() {
		if separateMetrics && r.Pattern == "/metrics" {
			continue
		}
		list = append(list, r)
	}
	return list
}

func backendRoutes() []route {
	charging := []*problem.Kind{problem.KindNotFound, problem.KindNotInPlan, problem.KindIDReused, problem.KindRefunded, problem.KindUnderWay}
	return []route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: hitsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "hit", Summary: "Consume units",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[client.HitRequest](), Response: reflect.TypeFor[client.Decision](), Refusable: true, Status: ok200, Problems: charging, IDHeader: idempotencyHeader,
		}, raw: (*Server).hits},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/hits/batch", Access: apidoc.Backends, Tag: "Backends", ID: "hitBatch", Summary: "Consume units many times",
			Request: reflect.TypeFor[client.Batch](), Response: reflect.TypeFor[batchResults](), Status: ok200, Problems: charging, IDHeader: idempotencyHeader,
		}, raw: (*Server).hitsBatch},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/refunds", Access: apidoc.Backends, Tag: "Backends", ID: "refund", Summary: "Give units back",
			Request: reflect.TypeFor[client.RefundRequest](), Response: reflect.TypeFor[client.Refund](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound, problem.KindIDReused, problem.KindUnderWay}, IDHeader: idempotencyHeader,
		}, raw: (*Server).refund},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/quota", Access: apidoc.EveryScope, Tag: "Backends", ID: "quota", Summary: "What a customer has left",
			Params:   []apidoc.Param{attributeParam},
			Response: reflect.TypeFor[client.Quota](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).quota},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/usage", Access: apidoc.EveryScope, Tag: "Backends", ID: "usage", Summary: "What a customer used",
			Params:   usageParams,
			Response: reflect.TypeFor[client.Usage](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).usage},
	}
}

var denyStatusParam = apidoc.Param{Name: "deny_status", Type: "string", Doc: "The status of a refusal. 429 when left out.", Enum: []string{"200", "403", "429"}}

func reservationRoutes() []route {
	const one = reservationsPattern + "/{id}"
	return []route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: reservationsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "reserve", Summary: "Hold units until their cost is known",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[client.ReservationRequest](), Response: reflect.TypeFor[client.Reservation](), Refusable: true, Status: created201,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindNotInPlan, problem.KindIDReused, problem.KindUnderWay, problem.KindConflict}, IDHeader: idempotencyHeader,
		}, raw: (*Server).reserve},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: one + "/commit", Access: apidoc.Backends, Tag: "Backends", ID: "commit", Summary: "Charge what a reservation was for",
			Request: reflect.TypeFor[client.CommitRequest](), Response: reflect.TypeFor[client.Commit](), DoesNotFit: reflect.TypeFor[client.NoRoom](), Status: ok200, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, raw: (*Server).commit},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: one, Access: apidoc.Backends, Tag: "Backends", ID: "release", Summary: "Give a reservation back",
			Status: done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, handle: (*Server).release},
		openReservationsRoute(),
	}
}

func adminRoutes() []route {
	list := append(meterRoutes(), planRoutes()...)
	list = append(list, draftRoutes()...)
	list = append(list, customerRoutes()...)
	list = append(list, overrideRoutes()...)
	list = append(list, refusalRoute())
	list = append(list, adjustmentRoutes()...)
	list = append(list, clockRoutes()...)
	list = append(list, keyRoutes()...)
	return append(list, auditRoutes()...)
}

func meterRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	meter := reflect.TypeFor[client.Meter]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/meters/{key}", Access: apidoc.AdminOnly, Tag: "Meters", ID: "putMeter", Summary: "Declare a meter",
			Request: reflect.TypeFor[client.MeterRequest](), Response: meter, Status: put200or201,
		}, handle: (*Server).putMeter},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/meters/{key}", Access: apidoc.Readers, Tag: "Meters", ID: "getMeter", Summary: "Get a meter",
			Response: meter, Status: ok200, Problems: missing,
		}, handle: (*Server).getMeter},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/meters", Access: apidoc.Readers, Tag: "Meters", ID: "listMeters", Summary: "List the meters",
			Params: paging, Response: reflect.TypeFor[client.List[client.Meter]](), Status: ok200,
		}, handle: (*Server).listMeters},
	}
}

func planRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	plan, plansPage := reflect.TypeFor[client.Plan](), reflect.TypeFor[client.List[client.Plan]]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/plans/{key}", Access: apidoc.AdminOnly, Tag: "Plans", ID: "putPlan", Summary: "Write a version of a plan",
			Request: reflect.TypeFor[client.PlanInput](), Response: plan, Status: put200or201, Problems: preconditions,
		}, handle: (*Server).putPlan},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}", Access: apidoc.Readers, Tag: "Plans", ID: "getPlan", Summary: "Get a plan",
			Response: plan, Status: ok200, Problems: missing,
		}, handle: (*Server).getPlan},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans", Access: apidoc.Readers, Tag: "Plans", ID: "listPlans", Summary: "List the plans",
			Params: paging, Response: plansPage, Status: ok200,
		}, handle: (*Server).listPlans},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}/versions", Access: apidoc.Readers, Tag: "Plans", ID: "listVersions", Summary: "List the versions of a plan",
			Params: paging, Response: plansPage, Status: ok200, Problems: missing,
		}, handle: (*Server).listVersions},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}/versions/{n}", Access: apidoc.Readers, Tag: "Plans", ID: "getVersion", Summary: "Get a version of a plan",
			Response: plan, Status: ok200, Problems: missing,
		}, handle: (*Server).getVersion},
	}
}

func customerRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	customer := reflect.TypeFor[client.Customer]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "putCustomer", Summary: "Write a customer",
			Request: reflect.TypeFor[client.CustomerRequest](), Response: customer, Status: put200or201, Problems: append([]*problem.Kind{problem.KindConflict}, preconditions...),
		}, handle: (*Server).putCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}", Access: apidoc.Readers, Tag: "Customers", ID: "getCustomer", Summary: "Get a customer",
			Response: customer, Status: ok200, Problems: missing,
		}, handle: (*Server).getCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers", Access: apidoc.Readers, Tag: "Customers", ID: "listCustomers", Summary: "List the customers",
			Params: append([]apidoc.Param{
				{Name: "prefix", Type: "string", Doc: "What the keys begin with."},
				{Name: "search", Type: "string", Doc: "What the key begins with, or words of the name, in any case."},
			}, paging...), Response: reflect.TypeFor[client.List[client.Customer]](), Status: ok200,
		}, handle: (*Server).listCustomers},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "archiveCustomer", Summary: "Archive a customer",
			Params:   []apidoc.Param{{Name: "erase", Type: "boolean", Doc: "`true` also removes what identifies a person. There is no way back."}},
			Response: customer, Status: []int{http.StatusOK, http.StatusNoContent}, Problems: missing,
		}, handle: (*Server).archiveCustomer},
	}
}

func overrideRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	override := reflect.TypeFor[client.Override]()
	const ofLimit = "/v1/customers/{key}/overrides/{limit}"
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: ofLimit, Access: apidoc.Supporters, Tag: "Customers", ID: "putOverride", Summary: "Override a limit for a customer",
			Request: reflect.TypeFor[client.OverrideRequest](), Response: override, Status: put200or201, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, handle: (*Server).putOverride},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: ofLimit, Access: apidoc.Supporters, Tag: "Customers", ID: "deleteOverride", Summary: "End an override",
			Status: done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, handle: (*Server).deleteOverride},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/overrides", Access: apidoc.Readers, Tag: "Customers", ID: "listOverrides", Summary: "List a customer's overrides",
			Params: paging, Response: reflect.TypeFor[client.List[client.Override]](), Status: ok200, Problems: missing,
		}, handle: (*Server).listOverrides},
	}
}

func keyRoutes() []route {
	return []route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "createKey", Summary: "Create a key",
			Request: reflect.TypeFor[client.KeyRequest](), Response: reflect.TypeFor[client.NewKey](), Status: created201,
		}, handle: (*Server).createKey},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "listKeys", Summary: "List the keys",
			Params: paging, Response: reflect.TypeFor[client.List[client.Key]](), Status: ok200,
		}, handle: (*Server).listKeys},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/keys/{id}", Access: apidoc.AdminOnly, Tag: "Keys", ID: "revokeKey", Summary: "Revoke a key",
			Status: done204, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).revokeKey},
	}
}

func serviceRoutes() []route {
	return []route{
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/livez", Tag: "Service", ID: "livez", Summary: "Whether the process runs",
			Response: reflect.TypeFor[client.Health](), Status: ok200,
		}, handle: (*Server).livez},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/readyz", Tag: "Service", ID: "readyz", Summary: "Whether to send requests here",
			Response: reflect.TypeFor[client.Health](), Status: ok200, Problems: []*problem.Kind{problem.KindNotReady},
		}, handle: (*Server).readyz},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/", Tag: "Service", ID: "root", Summary: "Go to the documentation", Status: []int{http.StatusFound}}, raw: (*Server).toDocs},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/metrics", Access: apidoc.Readers, Tag: "Service", ID: "metrics", Summary: "Metrics for Prometheus", Media: "text/plain", Status: ok200}, raw: (*Server).serveMetrics},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/openapi.json", Tag: "Service", ID: "openapi", Summary: "This document", Media: "application/json", Status: ok200}, raw: (*Server).serveOpenAPI},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/docs", Tag: "Service", ID: "docs", Summary: "This document as a page", Media: "text/html", Status: ok200}, raw: (*Server).serveDocs},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/problems/{name}", Tag: "Service", ID: "problem", Summary: "What a problem type means", Media: "text/html", Status: ok200, Problems: []*problem.Kind{problem.KindNotFound}}, raw: (*Server).serveProblem},
	}
}

// preconditions are the problems of routes that read If-Match.
var preconditions = []*problem.Kind{problem.KindPrecondition, problem.KindPreconditionRequired}
