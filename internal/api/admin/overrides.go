package admin

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

func showOverride(o *plans.Override) client.Override {
	return client.Override{
		Name: o.Name, Limit: o.Limit, Burst: o.Burst, ExpiresAt: o.ExpiresAt, Reason: o.Reason,
		InForce: o.InForce, TestClock: o.TestClock,
	}
}

func (s *Room) putOverride(c *serve.Call, in client.OverrideRequest) (is *plans.Override, isNew bool, err error) {
	return s.Store.PutOverride(c.Ctx(), c.Key, c.Limit, plans.OverrideInput{Limit: in.Limit, Burst: in.Burst, ExpiresAt: in.ExpiresAt, Reason: in.Reason})
}

func (s *Room) deleteOverride(c *serve.Call) error {
	return s.Store.DeleteOverride(c.Ctx(), c.Key, c.Limit)
}

func (s *Room) listOverrides(c *serve.Call) (*plans.List[*plans.Override], error) {
	return s.Store.ListOverrides(c.Ctx(), c.Key, c.Query.Page())
}

func (s *Room) overrideRoutes() []serve.Route {
	const overrides, one = "/v1/customers/{key}/overrides", "/v1/customers/{key}/overrides/{limit}"
	none := client.OverrideRequest{Limit: model.NoLimit} // A missing limit is refused; 0 would mean a closed limit
	return serve.Tagged("Customers",
		serve.Put(apidoc.Supporters, one, "overrides.put", "Override a limit for a customer", s.putOverride, showOverride).Defaults(none).Fails(refused...),
		serve.Delete(apidoc.Supporters, one, "overrides.delete", "End an override", s.deleteOverride).Fails(refused...),
		serve.List(apidoc.Readers, overrides, "overrides.list", "List a customer's overrides", s.listOverrides, showOverride).Fails(problem.KindNotFound),
	)
}
