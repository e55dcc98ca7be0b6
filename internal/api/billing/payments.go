package billing

import (
	"fmt"
	"net/http"
	"strconv"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/invoices"
	"quotad/internal/quota/model"
)

// part is what is wrong with an amount that may be left out.
func part(amount *int64) (bad model.FieldErrors) {
	if amount != nil && (*amount < 1 || *amount > billing.MaxMinor) {
		bad = append(bad, model.FieldError{Field: "amount_minor", Detail: fmt.Sprintf("must be from 1 to %d, or left out for all", billing.MaxMinor)})
	}
	return bad
}

// partOf is the amount, and its text in a payload. 0 and "" are all.
func partOf(amount *int64) (minor int64, text string) {
	if amount == nil {
		return 0, ""
	}
	return *amount, strconv.FormatInt(*amount, 10)
}

// onceFor is the id of a request with what is asked for.
func onceFor(operation, id string, payload ...string) invoices.Once {
	return invoices.Once{ID: id, Payload: model.NewID(operation, id, payload...).Payload}
}

// named takes the white space off both ends of a reason. It is the faults of a reason and an id that are
// both required.
func named(reason *string, id string) (bad model.FieldErrors) {
	if wrong := request.CheckText(reason); wrong != "" {
		bad = append(bad, model.FieldError{Field: "reason", Detail: wrong})
	}
	if wrong := request.CheckID(id); wrong != "" {
		bad = append(bad, model.FieldError{Field: "id", Detail: wrong})
	}
	return bad
}

func (s *Room) payInvoice(c *serve.Call) (serve.Answer, error) {
	id, err := request.PathValue(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	key, err := request.IdempotencyKey(c.R.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.PayRequest
	if err = request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
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
		return serve.Answer{}, problem.InvalidFields(bad)
	}
	if own, err = request.OneID(own, key); err != nil {
		return serve.Answer{}, err
	}
	amount, text := partOf(in.AmountMinor)
	return invoiceAnswer(s.Invoices.Pay(c.Ctx(), id, amount, in.Reference, onceFor("pay", own, id, text, in.Reference)))
}

func (s *Room) reversePayment(c *serve.Call) (serve.Answer, error) {
	id, err := request.PathValue(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	text, err := request.PathValue(c.R, "n")
	if err != nil {
		return serve.Answer{}, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return serve.Answer{}, billing.ErrUnknownPayment
	}
	var in client.ReverseRequest
	if err = request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	if bad := named(&in.Reason, in.ID); len(bad) > 0 {
		return serve.Answer{}, problem.InvalidFields(bad)
	}
	return invoiceAnswer(s.Invoices.Reverse(c.Ctx(), id, n, in.Reason, onceFor("reverse", in.ID, id, text, in.Reason)))
}

func (s *Room) applyCredits(c *serve.Call) (serve.Answer, error) {
	id, err := request.PathValue(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	return invoiceAnswer(s.Invoices.ApplyCredits(c.Ctx(), id))
}

func (s *Room) withdrawCredit(c *serve.Call) (serve.Answer, error) {
	customer, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	credit, err := request.PathValue(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	if request.CheckID(credit) != "" {
		return serve.Answer{}, billing.ErrUnknownCredit
	}
	var in client.WithdrawRequest
	if err = request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	if bad := append(part(in.AmountMinor), named(&in.Reason, in.ID)...); len(bad) > 0 {
		return serve.Answer{}, problem.InvalidFields(bad)
	}
	amount, text := partOf(in.AmountMinor)
	out, err := s.Invoices.Withdraw(c.Ctx(), customer, credit, amount, in.Reason, onceFor("withdraw", in.ID, credit, text, in.Reason))
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Body: client.Withdrawn{
		Customer: customer, Credit: showCredit(out.Credit), WithdrawnMinor: out.Minor, TestClock: out.Clock, Replayed: out.Replayed,
	}}, nil
}
