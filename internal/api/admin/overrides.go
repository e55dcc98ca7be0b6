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

type overrideRequest struct {
	Limit     int64             `json:"limit" minimum:"0" maximum:"999999999999999" doc:"The limit instead of the plan's. 0 is closed."`
	Burst     *int64            `json:"burst,omitempty" minimum:"0" maximum:"999999999999999" doc:"The capacity of a token bucket. When left out, limit, whatever the plan's burst is."`
	ExpiresAt request.Timestamp `json:"expires_at,omitzero" doc:"When the plan's own numbers count again, by the customer's clock. Null or left out: never."`
	Reason    string            `json:"reason,omitempty" maxLength:"200" doc:"Why, for people who read the list and the audit."`
}

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
	in := overrideRequest{Limit: model.NoLimit} // refused if it stays; 0 would mean a closed limit
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	override, isNew, err := s.Store.PutOverride(c.Ctx(), customer, limit,
		plans.OverrideInput{Limit: in.Limit, Burst: in.Burst, ExpiresAt: in.ExpiresAt.At, Reason: in.Reason})
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
