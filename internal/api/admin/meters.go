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

func showMeter(m plans.Meter) client.Meter {
	return client.Meter{Key: m.Key, Unit: m.Unit, Name: m.Name, Kind: m.Kind()}
}

func (s *Room) putMeter(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.MeterRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	m, isNew, err := s.Store.PutMeter(c.Ctx(), key, plans.PutMeterInput{Unit: in.Unit, Name: in.Name, Kind: in.Kind})
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: serve.PutStatus(isNew), Body: showMeter(m)}, nil
}

func (s *Room) getMeter(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	m, err := s.Store.GetMeter(c.Ctx(), key)
	return serve.Answer{Status: http.StatusOK, Body: showMeter(m)}, err
}

func (s *Room) listMeters(c *serve.Call) (serve.Answer, error) {
	meters, err := s.Store.ListMeters(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(meters, err, showMeter)
}

func (s *Room) meterRoutes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	meter := reflect.TypeFor[client.Meter]()
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/meters/{key}", Access: apidoc.AdminOnly, Tag: "Meters", ID: "putMeter", Summary: "Declare a meter",
			Request: reflect.TypeFor[client.MeterRequest](), Response: meter, Status: serve.Put200or201, Problems: []*problem.Kind{problem.KindConflict},
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
