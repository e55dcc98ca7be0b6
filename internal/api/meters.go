package api

import (
	"net/http"

	"quotad/client"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func showMeter(m plans.Meter) client.Meter {
	return client.Meter{Key: m.Key, Unit: m.Unit, Name: m.Name}
}

func (s *Server) putMeter(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.MeterRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	m, isNew, err := s.Store.PutMeter(c.Ctx(), key, plans.PutMeterInput{Unit: in.Unit, Name: in.Name})
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: serve.PutStatus(isNew), Body: showMeter(m)}, nil
}

func (s *Server) getMeter(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	m, err := s.Store.GetMeter(c.Ctx(), key)
	return serve.Answer{Status: http.StatusOK, Body: showMeter(m)}, err
}

func (s *Server) listMeters(c *serve.Call) (serve.Answer, error) {
	meters, err := s.Store.ListMeters(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(meters, err, showMeter)
}
