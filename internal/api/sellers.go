package api

import (
	"net/http"

	"quotad/client"
	"quotad/internal/api/request"
	"quotad/internal/billing"
	"quotad/internal/billing/ledger"
)

func showSeller(s *ledger.Seller) billing.Seller { return s.Seller }

func (s *Server) putSeller(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	var in client.SellerRequest
	if err := request.Decode(c.body, &in); err != nil {
		return answer{}, err
	}
	pre, err := request.Precondition(c.r.Header)
	if err != nil {
		return answer{}, err
	}
	seller, isNew, err := s.Billing.PutSeller(c.ctx(), billing.Seller{Key: key, Name: in.Name, Address: in.Address, TaxID: in.TaxID, Prefix: in.Prefix}, pre)
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(isNew), etag: seller.ETag(), body: showSeller(seller)}, nil
}

func (s *Server) getSeller(c *call) (answer, error) {
	key, err := request.NameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	seller, err := s.Billing.Seller(c.ctx(), key)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, etag: seller.ETag(), body: showSeller(seller)}, nil
}

func (s *Server) listSellers(c *call) (answer, error) {
	list, err := s.Billing.Sellers(c.ctx(), c.query.Page())
	return listAnswer(list, err, showSeller)
}
