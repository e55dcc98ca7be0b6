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
	"quotad/internal/quota/model"
)

func showOverride(o *plans.Override) client.Override {
	return client.Override{
		Name: o.Name, Limit: o.Limit, Burst: o.Burst, ExpiresAt: o.ExpiresAt, Reason: o.Reason,
		InForce: o.InForce, TestClock: o.TestClock,
	}
}

// overrideInPath is the customer's key and the limit's name in the path.
func overrideInPath(r *http.Request) (customer, limit string, err error) {
	if customer, err = request.CustomerInPath(r); err == nil {
		limit, err = request.NameInPath(r, "limit")
	}
	return customer, limit, err
}

func (s *Room) putOverride(c *serve.Call) (serve.Answer, error) {
	customer, limit, err := overrideInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	in := client.OverrideRequest{Limit: model.NoLimit} // refused if it stays; 0 would mean a closed limit
	if err := request.DecodeBy(request.TimeMembers, c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	override, isNew, err := s.Store.PutOverride(c.Ctx(), customer, limit,
		plans.OverrideInput{Limit: in.Limit, Burst: in.Burst, ExpiresAt: in.ExpiresAt, Reason: in.Reason})
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: serve.PutStatus(isNew), Body: showOverride(override)}, nil
}

func (s *Room) deleteOverride(c *serve.Call) (serve.Answer, error) {
	customer, limit, err := overrideInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusNoContent}, s.Store.DeleteOverride(c.Ctx(), customer, limit)
}

func (s *Room) listOverrides(c *serve.Call) (serve.Answer, error) {
	customer, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	list, err := s.Store.ListOverrides(c.Ctx(), customer, c.Query.Page())
	return serve.ListAnswer(list, err, showOverride)
}

func (s *Room) overrideRoutes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	override := reflect.TypeFor[client.Override]()
	const ofLimit = "/v1/customers/{key}/overrides/{limit}"
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: ofLimit, Access: apidoc.Supporters, Tag: "Customers", ID: "putOverride", Summary: "Override a limit for a customer",
			Request: reflect.TypeFor[client.OverrideRequest](), Response: override, Status: serve.Put200or201,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.putOverride},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: ofLimit, Access: apidoc.Supporters, Tag: "Customers", ID: "deleteOverride", Summary: "End an override",
			Status: serve.Done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.deleteOverride},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}/overrides", Access: apidoc.Readers, Tag: "Customers", ID: "listOverrides",
			Summary: "List a customer's overrides",
			Params:  request.Paging, Response: reflect.TypeFor[client.List[client.Override]](), Status: serve.OK200, Problems: missing,
		}, Handle: s.listOverrides},
	}
}
