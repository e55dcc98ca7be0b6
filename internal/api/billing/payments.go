package billing

import (
	"fmt"
	"strconv"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/invoices"
	"quotad/internal/quota/model"
)

// part returns the faults of an optional amount.
func part(amount *int64) (bad model.FieldErrors) {
	if amount != nil && (*amount < 1 || *amount > billing.MaxMinor) {
		bad = append(bad, model.FieldError{Field: "amount_minor", Detail: fmt.Sprintf("must be from 1 to %d, or left out for all", billing.MaxMinor)})
	}
	return bad
}

// partOf returns an optional amount and its text for a payload. 0 and "" mean the whole amount.
func partOf(amount *int64) (minor int64, text string) {
	if amount == nil {
		return 0, ""
	}
	return *amount, strconv.FormatInt(*amount, 10)
}

// onceFor returns the id of a request with its payload.
func onceFor(operation, id string, payload ...string) invoices.Once {
	return invoices.Once{ID: id, Payload: model.NewID(operation, id, payload...).Payload}
}

// named trims white space from both ends of a reason. It returns the faults of a required reason and a required
// id.
func named(reason *string, id string) (bad model.FieldErrors) {
	if wrong := request.CheckText(reason); wrong != "" {
		bad = append(bad, model.FieldError{Field: "reason", Detail: wrong})
	}
	if wrong := request.CheckID(id); wrong != "" {
		bad = append(bad, model.FieldError{Field: "id", Detail: wrong})
	}
	return bad
}

func (s *Room) payInvoice(c *serve.Call, in client.PayRequest) (*billing.Invoice, error) {
	bad := part(in.AmountMinor)
	if wrong := request.CheckReference(in.Reference); wrong != "" {
		bad = append(bad, model.FieldError{Field: "reference", Detail: wrong})
	}
	own := ""
	if in.ID != nil {
		own = *in.ID
		if wrong := request.CheckID(own); wrong != "" {
			bad = append(bad, model.FieldError{Field: "id", Detail: wrong})
		}
	}
	if len(bad) > 0 {
		return nil, problem.InvalidFields(bad)
	}
	own, err := request.OneID(own, c.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	amount, text := partOf(in.AmountMinor)
	return s.Invoices.Pay(c.Ctx(), c.ID, amount, in.Reference, onceFor("pay", own, c.ID, text, in.Reference))
}

func (s *Room) reversePayment(c *serve.Call, in client.ReverseRequest) (*billing.Invoice, error) {
	if bad := named(&in.Reason, in.ID); len(bad) > 0 {
		return nil, problem.InvalidFields(bad)
	}
	return s.Invoices.Reverse(c.Ctx(), c.ID, c.N, in.Reason, onceFor("reverse", in.ID, c.ID, strconv.Itoa(c.N), in.Reason))
}

func (s *Room) applyCredits(c *serve.Call) (*billing.Invoice, error) {
	return s.Invoices.ApplyCredits(c.Ctx(), c.ID)
}

func (s *Room) withdrawCredit(c *serve.Call, in client.WithdrawRequest) (client.Withdrawn, error) {
	if bad := append(part(in.AmountMinor), named(&in.Reason, in.ID)...); len(bad) > 0 {
		return client.Withdrawn{}, problem.InvalidFields(bad)
	}
	amount, text := partOf(in.AmountMinor)
	out, err := s.Invoices.Withdraw(c.Ctx(), c.Key, c.ID, amount, in.Reason, onceFor("withdraw", in.ID, c.ID, text, in.Reason))
	return client.Withdrawn{
		Customer: c.Key, Credit: showCredit(out.Credit), WithdrawnMinor: out.Minor, TestClock: out.Clock, Replayed: out.Replayed,
	}, err
}
