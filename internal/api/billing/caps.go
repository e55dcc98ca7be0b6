package billing

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/accounts"
)

func showCap(c *accounts.Cap) client.Cap {
	return client.Cap{Meter: c.Meter, AmountMinor: c.AmountMinor, Units: c.Units, Reason: respond.OrNull(c.Reason)}
}

func (s *Room) putCap(c *serve.Call, in client.CapRequest) (is *accounts.Cap, isNew bool, err error) {
	return s.Accounts.PutCap(c.Ctx(), c.Key, c.Meter, in.AmountMinor)
}

func (s *Room) getCap(c *serve.Call) (*accounts.Cap, error) {
	return s.Accounts.Cap(c.Ctx(), c.Key, c.Meter)
}

func (s *Room) deleteCap(c *serve.Call) error { return s.Accounts.DeleteCap(c.Ctx(), c.Key, c.Meter) }

func (s *Room) listCaps(c *serve.Call) ([]*accounts.Cap, error) {
	return s.Accounts.Caps(c.Ctx(), c.Key)
}

func (s *Room) capRoutes() []serve.Route {
	const caps, one = "/v1/customers/{key}/caps", "/v1/customers/{key}/caps/{meter}"
	none := client.CapRequest{AmountMinor: -1} // a missing amount is refused
	return serve.Tagged("Billing",
		serve.Put(apidoc.AdminOnly, one, "caps.put", "Cap what a meter may cost", s.putCap, showCap).Defaults(none).Fails(refused...),
		serve.Get(apidoc.Readers, one, "caps.get", "Get a cap", s.getCap, showCap).Fails(refused...),
		serve.Delete(apidoc.AdminOnly, one, "caps.delete", "Take a cap away", s.deleteCap).Fails(refused...),
		serve.ListAll(apidoc.Readers, caps, "caps.list", "List a customer's caps", s.listCaps, showCap).Fails(refused...),
	)
}
