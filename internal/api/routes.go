package api

import (
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
)

const (
	hitsPattern         = "/v1/hits"
	reservationsPattern = "/v1/reservations"
)

// routes is every route of the API, in the order of the documentation.
func (s *Server) routes() []serve.Route {
	list := append(s.backendRoutes(), s.reservationRoutes()...)
	list = append(list, s.adminRoutes()...)
	list = append(list, s.importRoutes()...)
	list = append(list, s.billingRoutes()...)
	list = append(list, s.paperRoutes()...)
	list = append(list, s.accountRoutes()...)
	list = append(list, s.portalRoutes()...)
	list = append(list, s.reconcileRoutes()...)
	list = append(list, s.overviewRoute())
	for _, r := range s.serviceRoutes() {
		if s.options.SeparateMetrics && r.Pattern == "/metrics" {
			continue
		}
		list = append(list, r)
	}
	return list
}

func (s *Server) backendRoutes() []serve.Route {
	charging := []*problem.Kind{problem.KindNotFound, problem.KindNotInPlan, problem.KindIDReused, problem.KindRefunded, problem.KindUnderWay}
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: hitsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "hit", Summary: "Consume units",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[client.HitRequest](), Response: reflect.TypeFor[client.Decision](), Refusable: true, Status: serve.OK200, Problems: charging, IDHeader: request.IdempotencyHeader,
		}, Raw: s.hits},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/hits/batch", Access: apidoc.Backends, Tag: "Backends", ID: "hitBatch", Summary: "Consume units many times",
			Request: reflect.TypeFor[client.Batch](), Response: reflect.TypeFor[batchResults](), Status: serve.OK200, Problems: charging, IDHeader: request.IdempotencyHeader,
		}, Raw: s.hitsBatch},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/refunds", Access: apidoc.Backends, Tag: "Backends", ID: "refund", Summary: "Give units back",
			Request: reflect.TypeFor[client.RefundRequest](), Response: reflect.TypeFor[client.Refund](), Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound, problem.KindIDReused, problem.KindUnderWay}, IDHeader: request.IdempotencyHeader,
		}, Raw: s.refund},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/quota", Access: apidoc.EveryScope, Tag: "Backends", ID: "quota", Summary: "What a customer has left",
			Params:   []apidoc.Param{request.AttributeParam},
			Response: reflect.TypeFor[quotaBody](), Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound},
		}, Handle: s.quota},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/usage", Access: apidoc.EveryScope, Tag: "Backends", ID: "usage", Summary: "What a customer used",
			Params:   usageParams,
			Response: reflect.TypeFor[client.Usage](), Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound},
		}, Handle: s.usage},
	}
}

var denyStatusParam = apidoc.Param{Name: "deny_status", Type: "string", Doc: "The status of a refusal. 429 when left out.", Enum: []string{"200", "403", "429"}}

func (s *Server) reservationRoutes() []serve.Route {
	const one = reservationsPattern + "/{id}"
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: reservationsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "reserve", Summary: "Hold units until their cost is known",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[client.ReservationRequest](), Response: reflect.TypeFor[client.Reservation](), Refusable: true, Status: serve.Created201,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindNotInPlan, problem.KindIDReused, problem.KindUnderWay, problem.KindConflict}, IDHeader: request.IdempotencyHeader,
		}, Raw: s.reserve},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: one + "/commit", Access: apidoc.Backends, Tag: "Backends", ID: "commit", Summary: "Charge what a reservation was for",
			Request: reflect.TypeFor[client.CommitRequest](), Response: reflect.TypeFor[client.Commit](), DoesNotFit: reflect.TypeFor[client.NoRoom](), Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Raw: s.commit},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: one, Access: apidoc.Backends, Tag: "Backends", ID: "release", Summary: "Give a reservation back",
			Status: serve.Done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.release},
		s.openReservationsRoute(),
	}
}

func (s *Server) adminRoutes() []serve.Route {
	list := append(s.meterRoutes(), s.planRoutes()...)
	list = append(list, s.draftRoutes()...)
	list = append(list, s.customerRoutes()...)
	list = append(list, s.overrideRoutes()...)
	list = append(list, s.refusalRoute())
	list = append(list, s.adjustmentRoutes()...)
	list = append(list, s.clockRoutes()...)
	list = append(list, s.keyRoutes()...)
	return append(list, s.auditRoutes()...)
}

func (s *Server) meterRoutes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	meter := reflect.TypeFor[client.Meter]()
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/meters/{key}", Access: apidoc.AdminOnly, Tag: "Meters", ID: "putMeter", Summary: "Declare a meter",
			Request: reflect.TypeFor[client.MeterRequest](), Response: meter, Status: serve.Put200or201,
		}, Handle: s.putMeter},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/meters/{key}", Access: apidoc.Readers, Tag: "Meters", ID: "getMeter", Summary: "Get a meter",
			Response: meter, Status: serve.OK200, Problems: missing,
		}, Handle: s.getMeter},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/meters", Access: apidoc.Readers, Tag: "Meters", ID: "listMeters", Summary: "List the meters",
			Params: request.Paging, Response: reflect.TypeFor[client.List[client.Meter]](), Status: serve.OK200,
		}, Handle: s.listMeters},
	}
}

func (s *Server) planRoutes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	plan, plansPage := reflect.TypeFor[client.Plan](), reflect.TypeFor[client.List[client.Plan]]()
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/plans/{key}", Access: apidoc.AdminOnly, Tag: "Plans", ID: "putPlan", Summary: "Write a version of a plan",
			Request: reflect.TypeFor[client.PlanInput](), Response: plan, Status: serve.Put200or201, Problems: serve.Preconditions,
		}, Handle: s.putPlan},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}", Access: apidoc.Readers, Tag: "Plans", ID: "getPlan", Summary: "Get a plan",
			Response: plan, Status: serve.OK200, Problems: missing,
		}, Handle: s.getPlan},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans", Access: apidoc.Readers, Tag: "Plans", ID: "listPlans", Summary: "List the plans",
			Params: request.Paging, Response: plansPage, Status: serve.OK200,
		}, Handle: s.listPlans},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}/versions", Access: apidoc.Readers, Tag: "Plans", ID: "listVersions", Summary: "List the versions of a plan",
			Params: request.Paging, Response: plansPage, Status: serve.OK200, Problems: missing,
		}, Handle: s.listVersions},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/plans/{key}/versions/{n}", Access: apidoc.Readers, Tag: "Plans", ID: "getVersion", Summary: "Get a version of a plan",
			Response: plan, Status: serve.OK200, Problems: missing,
		}, Handle: s.getVersion},
	}
}

func (s *Server) customerRoutes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	customer := reflect.TypeFor[client.Customer]()
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "putCustomer", Summary: "Write a customer",
			Request: reflect.TypeFor[client.CustomerRequest](), Response: customer, Status: serve.Put200or201, Problems: append([]*problem.Kind{problem.KindConflict}, serve.Preconditions...),
		}, Handle: s.putCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}", Access: apidoc.Readers, Tag: "Customers", ID: "getCustomer", Summary: "Get a customer",
			Response: customer, Status: serve.OK200, Problems: missing,
		}, Handle: s.getCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers", Access: apidoc.Readers, Tag: "Customers", ID: "listCustomers", Summary: "List the customers",
			Params: append([]apidoc.Param{
				{Name: "prefix", Type: "string", Doc: "What the keys begin with."},
				{Name: "search", Type: "string", Doc: "What the key begins with, or words of the name, in any case."},
			}, request.Paging...), Response: reflect.TypeFor[client.List[client.Customer]](), Status: serve.OK200,
		}, Handle: s.listCustomers},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "archiveCustomer", Summary: "Archive a customer",
			Params:   []apidoc.Param{{Name: "erase", Type: "boolean", Doc: "`true` also removes what identifies a person. There is no way back."}},
			Response: customer, Status: []int{http.StatusOK, http.StatusNoContent}, Problems: missing,
		}, Handle: s.archiveCustomer},
	}
}

func (s *Server) overrideRoutes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	override := reflect.TypeFor[client.Override]()
	const ofLimit = "/v1/customers/{key}/overrides/{limit}"
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: ofLimit, Access: apidoc.Supporters, Tag: "Customers", ID: "putOverride", Summary: "Override a limit for a customer",
			Request: reflect.TypeFor[overrideRequest](), Response: override, Status: serve.Put200or201, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.putOverride},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: ofLimit, Access: apidoc.Supporters, Tag: "Customers", ID: "deleteOverride", Summary: "End an override",
			Status: serve.Done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.deleteOverride},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/overrides", Access: apidoc.Readers, Tag: "Customers", ID: "listOverrides", Summary: "List a customer's overrides",
			Params: request.Paging, Response: reflect.TypeFor[client.List[client.Override]](), Status: serve.OK200, Problems: missing,
		}, Handle: s.listOverrides},
	}
}

func (s *Server) keyRoutes() []serve.Route {
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "createKey", Summary: "Create a key",
			Request: reflect.TypeFor[keyRequest](), Response: reflect.TypeFor[client.NewKey](), Status: serve.Created201,
		}, Handle: s.createKey},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "listKeys", Summary: "List the keys",
			Params: request.Paging, Response: reflect.TypeFor[client.List[client.Key]](), Status: serve.OK200,
		}, Handle: s.listKeys},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/keys/{id}", Access: apidoc.AdminOnly, Tag: "Keys", ID: "revokeKey", Summary: "Revoke a key",
			Status: serve.Done204, Problems: []*problem.Kind{problem.KindNotFound},
		}, Handle: s.revokeKey},
	}
}

func (s *Server) serviceRoutes() []serve.Route {
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/livez", Tag: "Service", ID: "livez", Summary: "Whether the process runs",
			Response: reflect.TypeFor[client.Health](), Status: serve.OK200,
		}, Handle: s.livez},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/readyz", Tag: "Service", ID: "readyz", Summary: "Whether to send requests here",
			Response: reflect.TypeFor[client.Health](), Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotReady},
		}, Handle: s.readyz},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/", Tag: "Service", ID: "root", Summary: "Go to the documentation", Status: []int{http.StatusFound}}, Raw: s.toDocs},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/metrics", Access: apidoc.Readers, Tag: "Service", ID: "metrics", Summary: "Metrics for Prometheus", Media: "text/plain", Status: serve.OK200}, Raw: s.serveMetrics},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/openapi.json", Tag: "Service", ID: "openapi", Summary: "This document", Media: "application/json", Status: serve.OK200}, Raw: s.serveOpenAPI},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/docs", Tag: "Service", ID: "docs", Summary: "This document as a page", Media: "text/html", Status: serve.OK200}, Raw: s.serveDocs},
		{Operation: apidoc.Operation{Method: "GET", Pattern: "/problems/{name}", Tag: "Service", ID: "problem", Summary: "What a problem type means", Media: "text/html", Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound}}, Raw: s.serveProblem},
	}
}
