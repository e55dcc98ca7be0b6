package api

import (
	"net/http"
	"time"

	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
)

// ownPriceRequest is a price of a plan without its meter, which is in the path.
type ownPriceRequest struct {
	Model        string       `json:"model" enum:"per_unit,package,graduated,volume"`
	UnitPrice    *string      `json:"unit_price,omitempty" doc:"A decimal number in major units."`
	PackageSize  *int64       `json:"package_size,omitempty" minimum:"1"`
	PackagePrice *string      `json:"package_price,omitempty" doc:"A decimal number in major units."`
	Tiers        []plans.Tier `json:"tiers,omitempty"`
	Included     int64        `json:"included" required:"false" minimum:"0" maximum:"999999999999999" default:"0" doc:"Units that are free. They come off first."`
	MinimumMinor *int64       `json:"minimum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The least that a period costs."`
	MaximumMinor *int64       `json:"maximum_minor,omitempty" minimum:"0" maximum:"999999999999999" doc:"The most that a period costs."`
}

type ownPriceBody struct {
	plans.Price
	From time.Time `json:"from" doc:"The price counts for billing periods that start then or later."`
}

func showOwnPrice(p *accounts.OwnPrice) ownPriceBody {
	return ownPriceBody{p.Price, timeOf(max(p.From, 0))}
}

func (s *Server) putOwnPrice(c *call) (answer, error) {
	customer, meter, err := meterOfCustomer(c.r)
	if err != nil {
		return answer{}, err
	}
	var in ownPriceRequest
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
