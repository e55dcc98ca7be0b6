package api

import (
	"fmt"
	"net/http"
	"strconv"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/billing"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// money is what is wrong with an amount that must not be 0, its currency and its id.
func money(amount, least int64, currency, id string) (bad model.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	if amount == 0 || amount < least || amount > billing.MaxMinor {
		refuse("amount_minor", fmt.Sprintf("is required, from %d to %d, and not 0", least, billing.MaxMinor))
	}
	if _, known := plans.Exponent(currency); !known {
		refuse("currency", "is required: an ISO 4217 code in capitals, such as USD")
	}
	if wrong := checkID(id); wrong != "" {
		refuse("id", wrong)
	}
	return bad
}

func (s *Server) charge(c *call) (answer, error) {
	customer, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	var in client.ChargeRequest
	if err = decode(c.body, &in); err != nil {
		return answer{}, err
	}
	bad := money(in.AmountMinor, -billing.MaxMinor, in.Currency, in.ID)
	if wrong := checkText(in.Description, true); wrong != "" {
		bad = append(bad, model.FieldError{Field: "description", Detail: wrong})
	}
	if len(bad) > 0 {
		return answer{}, problem.InvalidFields(bad)
	}
	made, clock, replayed, err := s.invoices.Charge(c.ctx(), customer,
		billing.Charge{ID: in.ID, Description: in.Description, Currency: in.Currency, AmountMinor: in.AmountMinor},
		model.NewID("charge", in.ID, in.Description, strconv.FormatInt(in.AmountMinor, 10), in.Currency).Payload)
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(!replayed), body: client.Charge{
		Customer: customer, ID: made.ID, Description: made.Description, AmountMinor: made.AmountMinor, Currency: made.Currency, At: timeOf(made.At), TestClock: clock, Replayed: replayed,
	}}, nil
}

func showCredit(c billing.Credit) client.Credit {
	return client.Credit{ID: c.ID, Kind: c.Kind, AmountMinor: c.AmountMinor, LeftMinor: c.LeftMinor, Currency: c.Currency, Priority: c.Priority, ExpiresAt: instantOrNull(c.ExpiresAt), At: timeOf(c.At)}
}

func (s *Server) grantCredit(c *call) (answer, error) {
	customer, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	in := client.CreditRequest{Kind: billing.CreditPromotional, Priority: 50}
	if err = decode(c.body, &in); err != nil {
		return answer{}, err
	}
	bad := money(in.AmountMinor, 1, in.Currency, in.ID)
	if in.Kind != billing.CreditPromotional && in.Kind != billing.CreditPaid {
		bad = append(bad, model.FieldError{Field: "kind", Detail: "must be promotional or paid"})
	}
	if in.Priority < 0 || in.Priority > 100 {
		bad = append(bad, model.FieldError{Field: "priority", Detail: "must be between 0 and 100"})
	}
	asked := billing.Credit{ID: in.ID, Kind: in.Kind, AmountMinor: in.AmountMinor, Currency: in.Currency, Priority: in.Priority}
	expires := ""
	if in.ExpiresAt != nil {
		expires = *in.ExpiresAt
		at, err := calendar.ParseInstant(expires)
		if err != nil {
			bad = append(bad, model.FieldError{Field: "expires_at", Detail: string(errWantTime)})
		}
		asked.ExpiresAt = &at
	}
	if len(bad) > 0 {
		return answer{}, problem.InvalidFields(bad)
	}
	made, clock, replayed, err := s.invoices.Grant(c.ctx(), customer, asked, model.NewID("credit", in.ID,
		strconv.FormatInt(in.AmountMinor, 10), in.Currency, in.Kind, strconv.Itoa(in.Priority), expires).Payload)
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(!replayed), body: client.Granted{Customer: customer, Credit: showCredit(made), TestClock: clock, Replayed: replayed}}, nil
}

func (s *Server) listCredits(c *call) (answer, error) {
	customer, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	found, err := s.invoices.Credits(c.ctx(), customer, c.query.page())
	if err != nil {
		return answer{}, err
	}
	body := client.Credits{
		Customer: customer, TestClock: found.Clock, NextCursor: orNull(found.Next),
		Balances: make([]client.Credit, len(found.Balances)), Entries: make([]client.CreditEntry, len(found.Entries)),
	}
	for i, credit := range found.Balances {
		body.Balances[i] = showCredit(credit)
	}
	for i, e := range found.Entries {
		body.Entries[i] = client.CreditEntry{Credit: e.Credit, Kind: e.Kind, AmountMinor: e.AmountMinor, Invoice: orNull(e.Invoice), At: timeOf(e.At)}
	}
	return answer{status: http.StatusOK, body: body}, nil
}
