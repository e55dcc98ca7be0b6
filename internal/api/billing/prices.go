package billing

import (
	"net/http"
	"time"

	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/ledger"
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

func showOwnPrice(p *ledger.OwnPrice) ownPriceBody {
	return ownPriceBody{p.Price, respond.Time(max(p.From, 0))}
}

func (s *Room) putOwnPrice(c *serve.Call) (serve.Answer, error) {
	customer, meter, err := meterOfCustomer(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	var in ownPriceRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	price, isNew, err := s.Billing.PutOwnPrice(c.Ctx(), customer, meter, &plans.Price{
		Model: in.Model, UnitPrice: in.UnitPrice, PackageSize: in.PackageSize, PackagePrice: in.PackagePrice,
		Tiers: in.Tiers, Included: in.Included, MinimumMinor: in.MinimumMinor, MaximumMinor: in.MaximumMinor,
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
	price, err := s.Billing.OwnPrice(c.Ctx(), customer, meter)
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
	_, _, err = s.Billing.PutOwnPrice(c.Ctx(), customer, meter, nil)
	return serve.Answer{Status: http.StatusNoContent}, err
}

func (s *Room) listOwnPrices(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	all, err := s.Billing.OwnPrices(c.Ctx(), key)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.ListAnswer(&plans.List[*ledger.OwnPrice]{Items: all}, nil, showOwnPrice)
}
