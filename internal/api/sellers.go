package api

import (
	"net/http"

	"quotad/client"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
)

func showSeller(s *accounts.Seller) billing.Seller { return s.Seller }

func (s *Server) putSeller(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	var in client.SellerRequest
	if err := decode(c.body, &in); err != nil {
		return answer{}, err
	}
	pre, err := precondition(c.r.Header)
	if err != nil {
		return answer{}, err
	}
	seller, isNew, err := s.accounts.PutSeller(c.ctx(), billing.Seller{Key: key, Name: in.Name, Address: in.Address, TaxID: in.TaxID, Prefix: in.Prefix}, pre)
	if err != nil {
		return answer{}, err
	}
	s.closing.Wake() // drafts may have waited for its name
	return answer{status: putStatus(isNew), etag: seller.ETag(), body: showSeller(seller)}, nil
}

func (s *Server) getSeller(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	seller, err := s.accounts.Seller(c.ctx(), key)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, etag: seller.ETag(), body: showSeller(seller)}, nil
}

func (s *Server) listSellers(c *call) (answer, error) {
	list, err := s.accounts.Sellers(c.ctx(), c.query.page())
	return listAnswer(list, err, showSeller)
}
