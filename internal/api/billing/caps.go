package billing

import (
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
)

func showCap(c *accounts.Cap) client.Cap {
	return client.Cap{Meter: c.Meter, AmountMinor: c.AmountMinor, Units: c.Units, Reason: respond.OrNull(c.Reason)}
}

func (s *Room) putCap(c *serve.Call) (serve.Answer, error) {
	customer, meter, err := meterOfCustomer(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	in := client.CapRequest{AmountMinor: -1} // none is refused
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	is, isNew, err := s.Accounts.PutCap(c.Ctx(), customer, meter, in.AmountMinor)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: serve.PutStatus(isNew), Body: showCap(is)}, nil
}

func (s *Room) getCap(c *serve.Call) (serve.Answer, error) {
	customer, meter, err := meterOfCustomer(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	is, err := s.Accounts.Cap(c.Ctx(), customer, meter)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Body: showCap(is)}, nil
}

func (s *Room) deleteCap(c *serve.Call) (serve.Answer, error) {
	customer, meter, err := meterOfCustomer(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusNoContent}, s.Accounts.DeleteCap(c.Ctx(), customer, meter)
}

func (s *Room) listCaps(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	all, err := s.Accounts.Caps(c.Ctx(), key)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.ListAnswer(&plans.List[*accounts.Cap]{Items: all}, nil, showCap)
}

func (s *Room) capRoutes() []serve.Route {
	const caps = "/v1/customers/{key}/caps"
	is, refused := reflect.TypeFor[client.Cap](), []*problem.Kind{problem.KindNotFound, problem.KindConflict}
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: caps + "/{meter}", Access: apidoc.AdminOnly, Tag: "Billing", ID: "putCap", Summary: "Cap what a meter may cost",
			Request: reflect.TypeFor[client.CapRequest](), Response: is, Status: serve.Put200or201, Problems: refused,
		}, Handle: s.putCap},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: caps + "/{meter}", Access: apidoc.Readers, Tag: "Billing", ID: "getCap", Summary: "Get a cap",
			Response: is, Status: serve.OK200, Problems: refused,
		}, Handle: s.getCap},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: caps + "/{meter}", Access: apidoc.AdminOnly, Tag: "Billing", ID: "deleteCap", Summary: "Take a cap away",
			Status: serve.Done204, Problems: refused,
		}, Handle: s.deleteCap},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: caps, Access: apidoc.Readers, Tag: "Billing", ID: "listCaps", Summary: "List a customer's caps",
			Response: reflect.TypeFor[client.List[client.Cap]](), Status: serve.OK200, Problems: refused,
		}, Handle: s.listCaps},
	}
}
