package api

import (
	"net/http"

	"quotad/client"
	"quotad/internal/api/request"
	"quotad/internal/plans"
)

func showMeter(m plans.Meter) client.Meter {
	return client.Meter{Key: m.Key, Unit: m.Unit, Name: m.Name}
}

func (s *Server) putMeter(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	var in client.MeterRequest
	if err := request.Decode(c.body, &in); err != nil {
		return answer{}, err
	}
	m, isNew, err := s.Store.PutMeter(c.ctx(), key, plans.PutMeterInput{Unit: in.Unit, Name: in.Name})
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(isNew), body: showMeter(m)}, nil
}

func (s *Server) getMeter(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	m, err := s.Store.GetMeter(c.ctx(), key)
	return answer{status: http.StatusOK, body: showMeter(m)}, err
}

func (s *Server) listMeters(c *call) (answer, error) {
	meters, err := s.Store.ListMeters(c.ctx(), c.query.Page())
	return listAnswer(meters, err, showMeter)
}
