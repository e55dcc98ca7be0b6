package admin

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

func showClock(c model.TestClock) client.Clock {
	return client.Clock{Key: c.Key, Now: respond.Time(c.Now)}
}

func (s *Room) putClock(c *serve.Call, in client.ClockRequest) (is model.TestClock, isNew bool, err error) {
	now, err := calendar.ParseInstant(in.Now)
	switch {
	case in.Now == "":
		return is, false, problem.Invalid("now", "is required: an RFC 3339 time such as 2026-01-31T12:00:00Z")
	case err != nil:
		return is, false, problem.Invalid("now", string(request.ErrWantTime))
	}
	if is, isNew, err = s.Store.PutTestClock(c.Ctx(), c.Key, now); err == nil {
		s.Closing.Wake()
	}
	return is, isNew, err
}

func (s *Room) getClock(c *serve.Call) (model.TestClock, error) {
	return s.Store.GetTestClock(c.Ctx(), c.Key)
}

func (s *Room) listClocks(c *serve.Call) (*plans.List[model.TestClock], error) {
	return s.Store.ListTestClocks(c.Ctx(), c.Query.Page())
}

func (s *Room) clockRoutes() []serve.Route {
	const clocks, one = "/v1/test-clocks", "/v1/test-clocks/{key}"
	return serve.Tagged("Test clocks",
		serve.Put(apidoc.AdminOnly, one, "testClocks.put", "Create or set a test clock", s.putClock, showClock).Fails(problem.KindArchived),
		serve.Get(apidoc.AdminOnly, one, "testClocks.get", "Get a test clock", s.getClock, showClock).Fails(problem.KindNotFound),
		serve.List(apidoc.AdminOnly, clocks, "testClocks.list", "List the test clocks", s.listClocks, showClock),
	)
}
