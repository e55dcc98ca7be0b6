package api

import (
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

func showClock(c model.TestClock) client.Clock { return client.Clock{Key: c.Key, Now: timeOf(c.Now)} }

func (s *Server) putClock(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	var in client.ClockRequest
	if err := decode(c.body, &in); err != nil {
		return answer{}, err
	}
	now, err := calendar.ParseInstant(in.Now)
	switch {
	case in.Now == "":
		return answer{}, problem.Invalid("now", "is required: an RFC 3339 time such as 2026-01-31T12:00:00Z")
	case err != nil:
		return answer{}, problem.Invalid("now", string(errWantTime))
	}
	clock, isNew, err := s.store.PutTestClock(c.ctx(), key, now)
	if err != nil {
		return answer{}, err
	}
	s.closing.Wake()
	return answer{status: putStatus(isNew), body: showClock(clock)}, nil
}

func (s *Server) getClock(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	clock, err := s.store.GetTestClock(c.ctx(), key)
	return answer{status: http.StatusOK, body: showClock(clock)}, err
}

func (s *Server) listClocks(c *call) (answer, error) {
	clocks, err := s.store.ListTestClocks(c.ctx(), c.query.page())
	return listAnswer(clocks, err, showClock)
}

func clockRoutes() []route {
	clock := reflect.TypeFor[client.Clock]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/test-clocks/{key}", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "putClock", Summary: "Create or set a test clock",
			Request: reflect.TypeFor[client.ClockRequest](), Response: clock, Status: put200or201,
		}, handle: (*Server).putClock},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/test-clocks/{key}", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "getClock", Summary: "Get a test clock",
			Response: clock, Status: ok200, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).getClock},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/test-clocks", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "listClocks", Summary: "List the test clocks",
			Params: paging, Response: reflect.TypeFor[client.List[client.Clock]](), Status: ok200,
		}, handle: (*Server).listClocks},
	}
}
