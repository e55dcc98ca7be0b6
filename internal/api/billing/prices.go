package billing

import (
	"net/http"

	"quotad/client"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
)

func showOwnPrice(p *accounts.OwnPrice) client.OwnPrice {
	return client.OwnPrice{Price: p.Price, From: respond.Time(max(p.From, 0))}
}

func (s *Room) putOwnPrice(c *serve.Call) (serve.Answer, error) {
	customer, meter, err := meterOfCustomer(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.OwnPriceRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	price, isNew, err := s.Accounts.PutOwnPrice(c.Ctx(), customer, meter, &plans.Price{
		Model: in.Model, UnitPrice: in.UnitPrice, PackageSize: in.PackageSize, PackagePrice: in.PackagePrice,
		Tiers: in.Tiers, Included: in.Included, MinimumMinor: in.MinimumMinor, MaximumMinor: in.MaximumMinor, LevelBy: in.LevelBy,
	})
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: serve.PutStatus(isNew), Body: showOwnPrice(price)}, nil
}

func meterOfCustomer(r *http.Request) (customer, meter string, err error) {
	if customer, err = request.CustomerInPath(r); err == nil {
		meter, err = request.NameInPath(r, "meter")
	}
	return customer, meter, err
}

func (s *Room) getOwnPrice(c *serve.Call) (serve.Answer, error) {
	customer, meter, err := meterOfCustomer(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	price, err := s.Accounts.OwnPrice(c.Ctx(), customer, meter)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Body: showOwnPrice(price)}, nil
}

func (s *Room) deleteOwnPrice(c *serve.Call) (serve.Answer, error) {
	customer, meter, err := meterOfCustomer(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	_, _, err = s.Accounts.PutOwnPrice(c.Ctx(), customer, meter, nil)
	return serve.Answer{Status: http.StatusNoContent}, err
}

func (s *Room) listOwnPrices(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	all, err := s.Accounts.OwnPrices(c.Ctx(), key)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.ListAnswer(&plans.List[*accounts.OwnPrice]{Items: all}, nil, showOwnPrice)
}
