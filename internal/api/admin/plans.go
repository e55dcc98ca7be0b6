package admin

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func showPlan(p *plans.Plan) client.Plan {
	return client.Plan{PlanVersion: p.PlanVersion, PlanInput: client.PlanInput(p.PlanInput)}
}

func (s *Room) putPlan(c *serve.Call, in client.PlanInput) (is *plans.Plan, isNew bool, err error) {
	return s.Store.PutPlan(c.Ctx(), c.Key, plans.PlanInput(in), c.If)
}

func (s *Room) getPlan(c *serve.Call) (*plans.Plan, error) {
	return s.Store.GetPlan(c.Ctx(), c.Key)
}

func (s *Room) getVersion(c *serve.Call) (*plans.Plan, error) {
	return s.Store.GetPlanVersion(c.Ctx(), c.Key, c.N)
}

func (s *Room) listPlans(c *serve.Call) (*plans.List[*plans.Plan], error) {
	return s.Store.ListPlans(c.Ctx(), c.Query.Page())
}

func (s *Room) listVersions(c *serve.Call) (*plans.List[*plans.Plan], error) {
	return s.Store.ListVersions(c.Ctx(), c.Key, c.Query.Page())
}

func (s *Room) planRoutes() []serve.Route {
	const all, one = "/v1/plans", "/v1/plans/{key}"
	return serve.Tagged("Plans",
		serve.Put(apidoc.AdminOnly, one, "plans.put", "Write a version of a plan", s.putPlan, showPlan).Fails(serve.Preconditions...),
		serve.Get(apidoc.Readers, one, "plans.get", "Get a plan", s.getPlan, showPlan).Fails(problem.KindNotFound),
		serve.List(apidoc.Readers, all, "plans.list", "List the plans", s.listPlans, showPlan),
		serve.List(apidoc.Readers, one+"/versions", "plans.listVersions", "List the versions of a plan", s.listVersions, showPlan).Fails(problem.KindNotFound),
		serve.Get(apidoc.Readers, one+"/versions/{n}", "plans.getVersion", "Get a version of a plan", s.getVersion, showPlan).Fails(problem.KindNotFound),
	)
}
