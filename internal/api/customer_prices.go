package api

import (
	"net/http"

	"quotad/client"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
)

func showOwnPrice(p *accounts.OwnPrice) client.OwnPrice {
	return client.OwnPrice{Price: p.Price, From: timeOf(max(p.From, 0))}
}

func (s *Server) putOwnPrice(c *call) (answer, error) {
	customer, meter, err := meterOfCustomer(c.r)
	if err != nil {
		return answer{}, err
	}
	var in client.OwnPriceRequest
	if err := decode(c.body, &in); err != nil {
		return answer{}, err
	}
	price, isNew, err := s.accounts.PutOwnPrice(c.ctx(), customer, meter, &plans.Price{
		Model: in.Model, UnitPrice: in.UnitPrice, PackageSize: in.PackageSize, PackagePrice: in.PackagePrice,
		Tiers: in.Tiers, Included: in.Included, MinimumMinor: in.MinimumMinor, MaximumMinor: in.MaximumMinor,
	})
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(isNew), body: showOwnPrice(price)}, nil
}

func meterOfCustomer(r *http.Request) (customer, meter string, err error) {
	if customer, err = customerInPath(r); err == nil {
		meter, err = nameInPath(r, "meter")
	}
	return customer, meter, err
}

func (s *Server) getOwnPrice(c *call) (answer, error) {
	customer, meter, err := meterOfCustomer(c.r)
	if err != nil {
		return answer{}, err
	}
	price, err := s.accounts.OwnPrice(c.ctx(), customer, meter)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: showOwnPrice(price)}, nil
}

func (s *Server) deleteOwnPrice(c *call) (answer, error) {
	customer, meter, err := meterOfCustomer(c.r)
	if err != nil {
		return answer{}, err
	}
	_, _, err = s.accounts.PutOwnPrice(c.ctx(), customer, meter, nil)
	return answer{status: http.StatusNoContent}, err
}

func (s *Server) listOwnPrices(c *call) (answer, error) {
	key, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	all, err := s.accounts.OwnPrices(c.ctx(), key)
	if err != nil {
		return answer{}, err
	}
	return listAnswer(&plans.List[*accounts.OwnPrice]{Items: all}, nil, showOwnPrice)
}
