package billing

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
)

func showOwnPrice(p *accounts.OwnPrice) client.OwnPrice {
	return client.OwnPrice{Price: p.Price, From: respond.Time(max(p.From, 0))}
}

func (s *Room) putOwnPrice(c *serve.Call, in client.OwnPriceRequest) (is *accounts.OwnPrice, isNew bool, err error) {
	return s.Accounts.PutOwnPrice(c.Ctx(), c.Key, c.Meter, &plans.Price{
		Model: in.Model, UnitPrice: in.UnitPrice, PackageSize: in.PackageSize, PackagePrice: in.PackagePrice,
		Tiers: in.Tiers, Included: in.Included, MinimumMinor: in.MinimumMinor, MaximumMinor: in.MaximumMinor, LevelBy: in.LevelBy,
	})
}

func (s *Room) getOwnPrice(c *serve.Call) (*accounts.OwnPrice, error) {
	return s.Accounts.OwnPrice(c.Ctx(), c.Key, c.Meter)
}

func (s *Room) deleteOwnPrice(c *serve.Call) error {
	_, _, err := s.Accounts.PutOwnPrice(c.Ctx(), c.Key, c.Meter, nil)
	return err
}

func (s *Room) listOwnPrices(c *serve.Call) ([]*accounts.OwnPrice, error) {
	return s.Accounts.OwnPrices(c.Ctx(), c.Key)
}

func (s *Room) ownPriceRoutes() []serve.Route {
	const prices, one = "/v1/customers/{key}/prices", "/v1/customers/{key}/prices/{meter}"
	return serve.Tagged("Billing",
		serve.Put(apidoc.AdminOnly, one, "prices.put", "Give a customer a price of its own", s.putOwnPrice, showOwnPrice).Fails(refused...),
		serve.Get(apidoc.Readers, one, "prices.get", "Get a price of a customer's own", s.getOwnPrice, showOwnPrice).Fails(refused...),
		serve.Delete(apidoc.AdminOnly, one, "prices.delete", "Go back to the plan's price", s.deleteOwnPrice).Fails(refused...),
		serve.ListAll(apidoc.Readers, prices, "prices.list", "List the prices of a customer's own", s.listOwnPrices, showOwnPrice).Fails(refused...),
	)
}
