package billing

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
)

func showSeller(s *accounts.Seller) client.Seller {
	return client.Seller{
		Key: s.Key, Name: s.Name, Address: s.Address, Country: s.Country, TaxID: s.TaxID, Registration: s.Registration, Email: s.Email,
		Payment: s.Payment, Footer: s.Footer, Prefix: s.Prefix, CreditNotePrefix: s.CreditNotePrefix, NextNumber: s.NextNumber,
		Warnings: ofSeller(&s.Seller),
	}
}

func (s *Room) putSeller(c *serve.Call, in client.SellerRequest) (is *accounts.Seller, isNew bool, err error) {
	return s.Accounts.PutSeller(c.Ctx(), accounts.SellerInput{Seller: billing.Seller{
		Key: c.Key, Name: in.Name, Address: in.Address, Country: in.Country, TaxID: in.TaxID, Registration: in.Registration, Email: in.Email,
		Payment: in.Payment, Footer: in.Footer, Prefix: in.Prefix,
	}, CreditNotePrefix: in.CreditNotePrefix, NextNumber: in.NextNumber}, c.If)
}

func (s *Room) getSeller(c *serve.Call) (*accounts.Seller, error) {
	return s.Accounts.Seller(c.Ctx(), c.Key)
}

func (s *Room) listSellers(c *serve.Call) (*plans.List[*accounts.Seller], error) {
	return s.Accounts.Sellers(c.Ctx(), c.Query.Page())
}

func (s *Room) sellerRoutes() []serve.Route {
	const sellers, one = "/v1/sellers", "/v1/sellers/{key}"
	return serve.Tagged("Billing",
		serve.Put(apidoc.AdminOnly, one, "sellers.put", "Write a seller", s.putSeller, showSeller).Fails(problem.KindPrecondition),
		serve.Get(apidoc.AdminOnly, one, "sellers.get", "Get a seller", s.getSeller, showSeller).Fails(problem.KindNotFound),
		serve.List(apidoc.AdminOnly, sellers, "sellers.list", "List the sellers", s.listSellers, showSeller),
	)
}
