package admin

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func showMeter(m plans.Meter) client.Meter {
	return client.Meter{Key: m.Key, Unit: m.Unit, Name: m.Name, Kind: m.Kind()}
}

func (s *Room) putMeter(c *serve.Call, in client.MeterRequest) (is plans.Meter, isNew bool, err error) {
	return s.Store.PutMeter(c.Ctx(), c.Key, plans.PutMeterInput{Unit: in.Unit, Name: in.Name, Kind: in.Kind})
}

func (s *Room) getMeter(c *serve.Call) (plans.Meter, error) {
	return s.Store.GetMeter(c.Ctx(), c.Key)
}

func (s *Room) listMeters(c *serve.Call) (*plans.List[plans.Meter], error) {
	return s.Store.ListMeters(c.Ctx(), c.Query.Page())
}

func (s *Room) meterRoutes() []serve.Route {
	const meters, one = "/v1/meters", "/v1/meters/{key}"
	return serve.Tagged("Meters",
		serve.Put(apidoc.AdminOnly, one, "meters.put", "Declare a meter", s.putMeter, showMeter).Fails(problem.KindConflict),
		serve.Get(apidoc.Readers, one, "meters.get", "Get a meter", s.getMeter, showMeter).Fails(problem.KindNotFound),
		serve.List(apidoc.Readers, meters, "meters.list", "List the meters", s.listMeters, showMeter),
	)
}
