package api

import (
	"net/http"

	"quotad/client"
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
	if customer, err = customerInPath(r); err == nil {
		limit, err = nameInPath(r, "limit")
	}
	return customer, limit, err
}

func (s *Server) putOverride(c *call) (answer, error) {
	customer, limit, err := overrideInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	in := client.OverrideRequest{Limit: model.NoLimit} // refused if it stays; 0 would mean a closed limit
	if err := decodeBy(timeMembers, c.body, &in); err != nil {
		return answer{}, err
	}
	override, isNew, err := s.store.PutOverride(c.ctx(), customer, limit,
		plans.OverrideInput{Limit: in.Limit, Burst: in.Burst, ExpiresAt: in.ExpiresAt, Reason: in.Reason})
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(isNew), body: showOverride(override)}, nil
}

func (s *Server) deleteOverride(c *call) (answer, error) {
	customer, limit, err := overrideInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, s.store.DeleteOverride(c.ctx(), customer, limit)
}

func (s *Server) listOverrides(c *call) (answer, error) {
	customer, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	list, err := s.store.ListOverrides(c.ctx(), customer, c.query.page())
	return listAnswer(list, err, showOverride)
}
