package billing

import (
	"net/http"

	"quotad/client"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
)

func showSeller(s *accounts.Seller) client.Seller {
	return client.Seller{
		Key: s.Key, Name: s.Name, Address: s.Address, Country: s.Country, TaxID: s.TaxID, Registration: s.Registration, Email: s.Email,
		Payment: s.Payment, Footer: s.Footer, Prefix: s.Prefix, CreditNotePrefix: s.CreditNotePrefix, NextNumber: s.NextNumber,
		Warnings: ofSeller(&s.Seller),
	}
}

func (s *Room) putSeller(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.SellerRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	pre, err := request.Precondition(c.R.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	seller, isNew, err := s.Accounts.PutSeller(c.Ctx(), accounts.SellerInput{Seller: billing.Seller{
		Key: key, Name: in.Name, Address: in.Address, Country: in.Country, TaxID: in.TaxID, Registration: in.Registration, Email: in.Email,
		Payment: in.Payment, Footer: in.Footer, Prefix: in.Prefix,
	}, CreditNotePrefix: in.CreditNotePrefix, NextNumber: in.NextNumber}, pre)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: serve.PutStatus(isNew), ETag: seller.ETag(), Body: showSeller(seller)}, nil
}

func (s *Room) getSeller(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	seller, err := s.Accounts.Seller(c.Ctx(), key)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, ETag: seller.ETag(), Body: showSeller(seller)}, nil
}

func (s *Room) listSellers(c *serve.Call) (serve.Answer, error) {
	list, err := s.Accounts.Sellers(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(list, err, showSeller)
}
