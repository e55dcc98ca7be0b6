package api

import (
	"net/http"
	"strconv"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/plans"
)

func (s *Server) putPlan(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	in, err := request.DecodePlan(c.body)
	if err != nil {
		return answer{}, err
	}
	pre, err := request.Precondition(c.r.Header)
	if err != nil {
		return answer{}, err
	}
	p, wrote, err := s.Store.PutPlan(c.ctx(), key, in, pre)
	return planAnswer(putStatus(wrote), p, err)
}

func (s *Server) getPlan(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	p, err := s.Store.GetPlan(c.ctx(), key)
	return planAnswer(http.StatusOK, p, err)
}

func (s *Server) getVersion(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	text, err := request.PathValue(c.r, "n")
	if err != nil {
		return answer{}, err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
		return answer{}, problem.Invalid("n", "must be the number of a version, 1 or more, in digits")
	}
	p, err := s.Store.GetPlanVersion(c.ctx(), key, int(n))
	return planAnswer(http.StatusOK, p, err)
}

func planAnswer(status int, p *plans.Plan, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{status: status, etag: p.ETag(), body: p}, nil
}

func (s *Server) listPlans(c *call) (answer, error) {
	list, err := s.Store.ListPlans(c.ctx(), c.query.Page())
	return listAnswer(list, err, asItIs[*plans.Plan])
}

func (s *Server) listVersions(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	list, err := s.Store.ListVersions(c.ctx(), key, c.query.Page())
	return listAnswer(list, err, asItIs[*plans.Plan])
}

// asItIs is the show function of items that answers show as the store returns them.
func asItIs[T any](item T) T { return item }
