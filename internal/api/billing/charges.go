package billing

import (
	"fmt"
	"strconv"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// money returns the faults of an amount that must not be 0, its currency and its id.
func money(amount, least int64, currency, id string) (bad model.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	if amount == 0 || amount < least || amount > billing.MaxMinor {
		refuse("amount_minor", fmt.Sprintf("is required, from %d to %d, and not 0", least, billing.MaxMinor))
	}
	if _, known := plans.Exponent(currency); !known {
		refuse("currency", "is required: an ISO 4217 code in capitals, such as USD")
	}
	if wrong := request.CheckID(id); wrong != "" {
		refuse("id", wrong)
	}
	return bad
}

func (s *Room) charge(c *serve.Call, in client.ChargeRequest) (is client.Charge, replayed bool, err error) {
	bad := money(in.AmountMinor, -billing.MaxMinor, in.Currency, in.ID)
	if wrong := request.CheckText(&in.Description); wrong != "" {
		bad = append(bad, model.FieldError{Field: "description", Detail: wrong})
	}
	if len(bad) > 0 {
		return is, false, problem.InvalidFields(bad)
	}
	made, clock, replayed, err := s.Invoices.Charge(c.Ctx(), c.Key,
		billing.Charge{ID: in.ID, Description: in.Description, Currency: in.Currency, AmountMinor: in.AmountMinor},
		model.NewID("charge", in.ID, in.Description, strconv.FormatInt(in.AmountMinor, 10), in.Currency).Payload)
	return client.Charge{
		Customer: c.Key, ID: made.ID, Description: made.Description, AmountMinor: made.AmountMinor, Currency: made.Currency, At: respond.Time(made.At),
		TestClock: clock, Replayed: replayed,
	}, replayed, err
}

func showCredit(c billing.Credit) client.Credit {
	return client.Credit{
		ID: c.ID, Kind: c.Kind, AmountMinor: c.AmountMinor, LeftMinor: c.LeftMinor, Currency: c.Currency, Priority: c.Priority,
		ExpiresAt: respond.InstantOrNull(c.ExpiresAt), At: respond.Time(c.At),
	}
}

func (s *Room) grantCredit(c *serve.Call, in client.CreditRequest) (is client.Granted, replayed bool, err error) {
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
			bad = append(bad, model.FieldError{Field: "expires_at", Detail: string(request.ErrWantTime)})
		}
		asked.ExpiresAt = &at
	}
	if len(bad) > 0 {
		return is, false, problem.InvalidFields(bad)
	}
	made, clock, replayed, err := s.Invoices.Grant(c.Ctx(), c.Key, asked, model.NewID("credit", in.ID,
		strconv.FormatInt(in.AmountMinor, 10), in.Currency, in.Kind, strconv.Itoa(in.Priority), expires).Payload)
	return client.Granted{Customer: c.Key, Credit: showCredit(made), TestClock: clock, Replayed: replayed}, replayed, err
}

func (s *Room) listCredits(c *serve.Call) (client.Credits, error) {
	found, err := s.Invoices.Credits(c.Ctx(), c.Key, c.Query.Page())
	body := client.Credits{
		Customer: c.Key, TestClock: found.Clock, NextCursor: respond.OrNull(found.Next),
		Balances: make([]client.Credit, len(found.Balances)), Entries: make([]client.CreditEntry, len(found.Entries)),
	}
	for i, credit := range found.Balances {
		body.Balances[i] = showCredit(credit)
	}
	for i, e := range found.Entries {
		body.Entries[i] = client.CreditEntry{
			Credit: e.Credit, Kind: e.Kind, AmountMinor: e.AmountMinor, Invoice: respond.OrNull(e.Invoice),
			At: respond.Time(e.At), Reason: e.Reason,
		}
	}
	return body, err
}
