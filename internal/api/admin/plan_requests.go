package admin

import (
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func (s *Room) requestPlan(c *serve.Call) (serve.Answer, error) {
	customer, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.PlanRequestRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	is, err := s.Store.RequestPlan(c.Ctx(), customer, in.Plan)
	return serve.Answer{Status: http.StatusOK, Body: client.PlanRequest(is)}, err
}

func (s *Room) listPlanRequests(c *serve.Call) (serve.Answer, error) {
	customer, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	all, err := s.Store.PlanRequests(c.Ctx(), customer)
	return serve.ListAnswer(&plans.List[plans.PlanRequest]{Items: all}, err, func(r plans.PlanRequest) client.PlanRequest { return client.PlanRequest(r) })
}

func (s *Room) planRequestRoutes() []serve.Route {
	const pattern = "/v1/customers/{key}/plan-requests"
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: pattern, Access: apidoc.Supporters, Tag: "Customers", ID: "requestPlan", Summary: "Tell that a customer asks for a plan",
			Request: reflect.TypeFor[client.PlanRequestRequest](), Response: reflect.TypeFor[client.PlanRequest](), Status: serve.OK200,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.requestPlan},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: pattern, Access: apidoc.Readers, Tag: "Customers", ID: "listPlanRequests", Summary: "List the plans that a customer asked for",
			Response: reflect.TypeFor[client.List[client.PlanRequest]](), Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound},
		}, Handle: s.listPlanRequests},
	}
}
