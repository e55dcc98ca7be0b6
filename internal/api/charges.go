package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"quotad/internal/api/problem"
	"quotad/internal/billing"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

type chargeRequest struct {
	Description string `json:"description" minLength:"1" maxLength:"500"`
	AmountMinor int64  `json:"amount_minor" minimum:"-999999999999999" maximum:"999999999999999" doc:"In minor units, not 0. Below 0 the customer owes less."`
	Currency    string `json:"currency" pattern:"^[A-Z]{3}$" doc:"The customer's."`
	ID          string `json:"id" minLength:"1" maxLength:"255" doc:"The charge is made once under it. It is the customer's for ever."`
}

type chargeBody struct {
	Customer    string    `json:"customer"`
	ID          string    `json:"id"`
	Description string    `json:"description"`
	AmountMinor int64     `json:"amount_minor"`
	Currency    string    `json:"currency"`
	At          time.Time `json:"at"`
	TestClock   string    `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Replayed    bool      `json:"replayed"`
}

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
	var in chargeRequest
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
	made, clock, replayed, err := s.billing.Charge(c.ctx(), customer,
		billing.Charge{ID: in.ID, Description: in.Description, Currency: in.Currency, AmountMinor: in.AmountMinor},
		model.NewID("charge", in.ID, in.Description, strconv.FormatInt(in.AmountMinor, 10), in.Currency).Payload)
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(!replayed), body: chargeBody{
		customer, made.ID, made.Description, made.AmountMinor, made.Currency, timeOf(made.At), clock, replayed,
	}}, nil
}

type creditRequest struct {
	AmountMinor int64   `json:"amount_minor" minimum:"1" maximum:"999999999999999" doc:"In minor units."`
	Currency    string  `json:"currency" pattern:"^[A-Z]{3}$" doc:"The customer's."`
	Kind        string  `json:"kind" required:"false" enum:"promotional,paid" default:"promotional"`
	Priority    int     `json:"priority" required:"false" minimum:"0" maximum:"100" default:"50" doc:"The low first."`
	ExpiresAt   *string `json:"expires_at,omitempty" format:"date-time" doc:"The credit pays invoices whose periods end before. Null or left out: it does not expire."`
	ID          string  `json:"id" minLength:"1" maxLength:"255" doc:"The credit is granted once under it. It is the customer's for ever."`
}

// CreditBody is a credit as it is shown.
type CreditBody struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind" enum:"promotional,paid,carried"`
	AmountMinor int64      `json:"amount_minor"`
	LeftMinor   int64      `json:"left_minor"`
	Currency    string     `json:"currency"`
	Priority    int        `json:"priority"`
	ExpiresAt   *time.Time `json:"expires_at"`
	At          time.Time  `json:"at" doc:"When it was granted."`
}

type grantedBody struct {
	Customer string `json:"customer"`
	CreditBody
	TestClock string `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Replayed  bool   `json:"replayed"`
}

func showCredit(c billing.Credit) CreditBody {
	return CreditBody{c.ID, c.Kind, c.AmountMinor, c.LeftMinor, c.Currency, c.Priority, instantOrNull(c.ExpiresAt), timeOf(c.At)}
}

func (s *Server) grantCredit(c *call) (answer, error) {
	customer, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	in := creditRequest{Kind: billing.CreditPromotional, Priority: 50}
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
	made, clock, replayed, err := s.billing.Grant(c.ctx(), customer, asked, model.NewID("credit", in.ID,
		strconv.FormatInt(in.AmountMinor, 10), in.Currency, in.Kind, strconv.Itoa(in.Priority), expires).Payload)
	if err != nil {
		return answer{}, err
	}
	return answer{status: putStatus(!replayed), body: grantedBody{customer, showCredit(made), clock, replayed}}, nil
}

type creditsBody struct {
	Customer  string        `json:"customer"`
	TestClock string        `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Balances  []CreditBody  `json:"balances" doc:"Credits, the newest first."`
	Entries   []creditEntry `json:"entries" doc:"How they came and went, the newest first."`
	// NextCursor leads to older credits and older entries.
	NextCursor *string `json:"next_cursor" doc:"Of older credits and entries. Null at the end of both."`
}

type creditEntry struct {
	Credit      string    `json:"credit" doc:"The id of the credit."`
	Kind        string    `json:"kind" enum:"granted,applied,returned,expired"`
	AmountMinor int64     `json:"amount_minor" doc:"What it adds to what is left of the credit."`
	Invoice     *string   `json:"invoice"`
	At          time.Time `json:"at"`
}

func (s *Server) listCredits(c *call) (answer, error) {
	customer, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	found, err := s.billing.Credits(c.ctx(), customer, c.query.page())
	if err != nil {
		return answer{}, err
	}
	body := creditsBody{
		Customer: customer, TestClock: found.Clock, NextCursor: orNull(found.Next),
		Balances: make([]CreditBody, len(found.Balances)), Entries: make([]creditEntry, len(found.Entries)),
	}
	for i, credit := range found.Balances {
		body.Balances[i] = showCredit(credit)
	}
	for i, e := range found.Entries {
		body.Entries[i] = creditEntry{e.Credit, e.Kind, e.AmountMinor, orNull(e.Invoice), timeOf(e.At)}
	}
	return answer{status: http.StatusOK, body: body}, nil
}
