package admin

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func showScheduled(is *plans.ScheduledChange) client.ScheduledChange {
	return client.ScheduledChange(*is)
}

func (s *Room) putScheduled(c *serve.Call, in client.ScheduledChangeRequest) (is *plans.ScheduledChange, isNew bool, err error) {
	return s.Store.ScheduleChange(c.Ctx(), c.Key, in.Plan, in.PlanVersion, in.When)
}

func (s *Room) getScheduled(c *serve.Call) (*plans.ScheduledChange, error) {
	customer, err := s.Store.GetCustomer(c.Ctx(), c.Key)
	switch {
	case err != nil:
		return nil, err
	case customer.Scheduled == nil:
		return nil, plans.ErrNoScheduled
	}
	return customer.Scheduled, nil
}

func (s *Room) deleteScheduled(c *serve.Call) error { return s.Store.DropScheduled(c.Ctx(), c.Key) }

func (s *Room) scheduledRoutes() []serve.Route {
	const one = "/v1/customers/{key}/scheduled-change"
	return serve.Tagged("Customers",
		serve.Put(apidoc.AdminOnly, one, "scheduledChange.put", "Schedule a change of plan", s.putScheduled, showScheduled).Fails(refused...),
		serve.Get(apidoc.Readers, one, "scheduledChange.get", "Get the scheduled change of plan", s.getScheduled, showScheduled).Fails(problem.KindNotFound),
		serve.Delete(apidoc.AdminOnly, one, "scheduledChange.delete", "Drop the scheduled change of plan", s.deleteScheduled).Fails(refused...),
	)
}
