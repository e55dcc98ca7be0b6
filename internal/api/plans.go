package api

import (
	"net/http"
	"strconv"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func (s *Server) putPlan(c *serve.Call) (serve.Answer, error) {
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

func (s *Server) getPlan(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	p, err := s.Store.GetPlan(c.Ctx(), key)
	return planAnswer(http.StatusOK, p, err)
}

func (s *Server) getVersion(c *serve.Call) (serve.Answer, error) {
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

func (s *Server) listPlans(c *serve.Call) (serve.Answer, error) {
	list, err := s.Store.ListPlans(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(list, err, asItIs[*plans.Plan])
}

func (s *Server) listVersions(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	list, err := s.Store.ListVersions(c.Ctx(), key, c.Query.Page())
	return serve.ListAnswer(list, err, asItIs[*plans.Plan])
}

// asItIs is the show function of items that answers show as the store returns them.
func asItIs[T any](item T) T { return item }
