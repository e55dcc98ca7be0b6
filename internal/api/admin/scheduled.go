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

func (s *Room) putScheduled(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.ScheduledChangeRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	is, isNew, err := s.Store.ScheduleChange(c.Ctx(), key, in.Plan, in.PlanVersion, in.When)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: serve.PutStatus(isNew), Body: client.ScheduledChange(*is)}, nil
}

func (s *Room) getScheduled(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	customer, err := s.Store.GetCustomer(c.Ctx(), key)
	if err == nil && customer.Scheduled == nil {
		err = plans.ErrNoScheduled
	}
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Body: client.ScheduledChange(*customer.Scheduled)}, nil
}

func (s *Room) deleteScheduled(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusNoContent}, s.Store.DropScheduled(c.Ctx(), key)
}

func (s *Room) scheduledRoutes() []serve.Route {
	const pattern = "/v1/customers/{key}/scheduled-change"
	scheduled := reflect.TypeFor[client.ScheduledChange]()
	changes := []*problem.Kind{problem.KindNotFound, problem.KindConflict}
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: pattern, Access: apidoc.AdminOnly, Tag: "Customers", ID: "putScheduledChange", Summary: "Schedule a change of plan",
			Request: reflect.TypeFor[client.ScheduledChangeRequest](), Response: scheduled, Status: serve.Put200or201, Problems: changes,
		}, Handle: s.putScheduled},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: pattern, Access: apidoc.Readers, Tag: "Customers", ID: "getScheduledChange", Summary: "Get the scheduled change of plan",
			Response: scheduled, Status: serve.OK200, Problems: changes[:1],
		}, Handle: s.getScheduled},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: pattern, Access: apidoc.AdminOnly, Tag: "Customers", ID: "deleteScheduledChange", Summary: "Drop the scheduled change of plan",
			Status: serve.Done204, Problems: changes,
		}, Handle: s.deleteScheduled},
	}
}
