package admin

import (
	"net/http"
	"reflect"
	"strconv"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func (s *Room) putPlan(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	in, err := request.DecodePlan(c.Body)
	if err != nil {
		return serve.Answer{}, err
	}
	pre, err := request.Precondition(c.R.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	p, wrote, err := s.Store.PutPlan(c.Ctx(), key, in, pre)
	return planAnswer(serve.PutStatus(wrote), p, err)
}

func (s *Room) getPlan(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	p, err := s.Store.GetPlan(c.Ctx(), key)
	return planAnswer(http.StatusOK, p, err)
}

func (s *Room) getVersion(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	text, err := request.PathValue(c.R, "n")
	if err != nil {
		return serve.Answer{}, err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
		return serve.Answer{}, problem.Invalid("n", "must be the number of a version, 1 or more, in digits")
	}
	p, err := s.Store.GetPlanVersion(c.Ctx(), key, int(n))
	return planAnswer(http.StatusOK, p, err)
}

func planAnswer(status int, p *plans.Plan, err error) (serve.Answer, error) {
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: status, ETag: p.ETag(), Body: p}, nil
}

func (s *Room) listPlans(c *serve.Call) (serve.Answer, error) {
	list, err := s.Store.ListPlans(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(list, err, asItIs[*plans.Plan])
}

func (s *Room) listVersions(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	list, err := s.Store.ListVersions(c.Ctx(), key, c.Query.Page())
	return serve.ListAnswer(list, err, asItIs[*plans.Plan])
}

// asItIs is the show function of items that answers show as the store returns them.
func asItIs[T any](item T) T { return item }

func (s *Room) planRoutes() []serve.Route {
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
