package api

import (
	"net/http"
	"reflect"
	"time"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

type clockRequest struct {
	Now string `json:"now" format:"date-time" doc:"The instant that the clock shows until it is set again.\n- RFC 3339, from 1970-01-01T00:00:00Z to 9000-01-01T00:00:00Z.\n- The clock may go back."`
}

type clockBody struct {
	Key string    `json:"key"`
	Now time.Time `json:"now"`
}

func showClock(c model.TestClock) clockBody { return clockBody{Key: c.Key, Now: timeOf(c.Now)} }

func (s *Server) putClock(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	var in clockRequest
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
	s.billing.Wake()
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
	clock := reflect.TypeFor[clockBody]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/test-clocks/{key}", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "putClock", Summary: "Create or set a test clock",
			Request: reflect.TypeFor[clockRequest](), Response: clock, Status: put200or201,
		}, handle: (*Server).putClock},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/test-clocks/{key}", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "getClock", Summary: "Get a test clock",
			Response: clock, Status: ok200, Problems: []*problem.Kind{problem.KindNotFound},
		}, handle: (*Server).getClock},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/test-clocks", Access: apidoc.AdminOnly, Tag: "Test clocks", ID: "listClocks", Summary: "List the test clocks",
			Params: paging, Response: reflect.TypeFor[listBody[clockBody]](), Status: ok200,
		}, handle: (*Server).listClocks},
	}
}
