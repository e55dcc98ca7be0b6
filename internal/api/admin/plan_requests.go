package admin

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func showPlanRequest(r plans.PlanRequest) client.PlanRequest { return client.PlanRequest(r) }

func (s *Room) requestPlan(c *serve.Call, in client.PlanRequestRequest) (plans.PlanRequest, error) {
	return s.Store.RequestPlan(c.Ctx(), c.Key, in.Plan)
}

func (s *Room) listPlanRequests(c *serve.Call) ([]plans.PlanRequest, error) {
	return s.Store.PlanRequests(c.Ctx(), c.Key)
}

func (s *Room) planRequestRoutes() []serve.Route {
	const requests = "/v1/customers/{key}/plan-requests"
	return serve.Tagged("Customers",
		serve.Act(apidoc.Supporters, requests, "planRequests.create", "Tell that a customer asks for a plan", s.requestPlan, showPlanRequest).Fails(refused...),
		serve.ListAll(apidoc.Readers, requests, "planRequests.list", "List the plans that a customer asked for", s.listPlanRequests, showPlanRequest).
			Fails(problem.KindNotFound),
	)
}
