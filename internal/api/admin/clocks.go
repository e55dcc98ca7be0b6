package admin

import (
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

func showClock(c model.TestClock) client.Clock {
	return client.Clock{Key: c.Key, Now: respond.Time(c.Now)}
}

func (s *Room) putClock(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.ClockRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	now, err := calendar.ParseInstant(in.Now)
	switch {
	case in.Now == "":
		return serve.Answer{}, problem.Invalid("now", "is required: an RFC 3339 time such as 2026-01-31T12:00:00Z")
	case err != nil:
		return serve.Answer{}, problem.Invalid("now", string(request.ErrWantTime))
	}
	clock, isNew, err := s.Store.PutTestClock(c.Ctx(), key, now)
	if err != nil {
		return serve.Answer{}, err
	}
	s.Closing.Wake()
	return serve.Answer{Status: serve.PutStatus(isNew), Body: showClock(clock)}, nil
}

func (s *Room) getClock(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	clock, err := s.Store.GetTestClock(c.Ctx(), key)
	return serve.Answer{Status: http.StatusOK, Body: showClock(clock)}, err
}

func (s *Room) listClocks(c *serve.Call) (serve.Answer, error) {
	clocks, err := s.Store.ListTestClocks(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(clocks, err, showClock)
}

func (s *Room) clockRoutes() []serve.Route {
	clock := reflect.TypeFor[client.Clock]()
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/test-clocks/{key}", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "putClock", Summary: "Create or set a test clock",
			Request: reflect.TypeFor[client.ClockRequest](), Response: clock, Status: serve.Put200or201, Problems: []*problem.Kind{problem.KindArchived},
		}, Handle: s.putClock},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/test-clocks/{key}", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "getClock", Summary: "Get a test clock",
			Response: clock, Status: serve.OK200, Problems: []*problem.Kind{problem.KindNotFound},
		}, Handle: s.getClock},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/test-clocks", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "listClocks", Summary: "List the test clocks",
			Params: request.Paging, Response: reflect.TypeFor[client.List[client.Clock]](), Status: serve.OK200,
		}, Handle: s.listClocks},
	}
}
