package billing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing/invoices"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// adjustmentRequest is the body of POST /v1/customers/{key}/adjustments.
type adjustmentRequest client.AdjustmentRequest

// check returns the request's one id and its instant, µs. Its error lists all that is wrong
// with the request. key is the id in the header. A preview needs no id.
func (in *adjustmentRequest) check(key string, preview bool) (id string, at int64, err error) {
	var bad model.FieldErrors
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	switch {
	case in.Meter == "":
		refuse("meter", "is required")
	case !plans.ValidKey(in.Meter):
		refuse("meter", plans.KeyRule)
	}
	if in.Cost == 0 || in.Cost < -model.MaxNumber || in.Cost > model.MaxNumber {
		refuse("cost", fmt.Sprintf("is required, from -%d to %d, and not 0", model.MaxNumber, model.MaxNumber))
	}
	if wrong := request.CheckText(&in.Reason); wrong != "" {
		refuse("reason", wrong)
	}
	if in.At != nil {
		if at, err = calendar.ParseInstant(*in.At); err != nil {
			refuse("at", "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
		} else if at == 0 {
			refuse("at", "must be after 1970-01-01T00:00:00Z")
		}
	}
	own := ""
	if in.ID != nil {
		own = *in.ID
		if wrong := request.CheckID(own); wrong != "" {
			refuse("id", wrong)
		}
	} else if key == "" && !preview {
		refuse("id", "is required, here or as the header Idempotency-Key, so that an adjustment that is sent again is made once")
	}
	if len(bad) > 0 {
		return "", 0, problem.InvalidFields(bad)
	}
	id, err = request.OneID(own, key)
	return id, at, err
}

// asked is the instant as it was asked for; empty: none was.
func (in *adjustmentRequest) asked() string {
	if in.At == nil {
		return ""
	}
	return *in.At
}

// adjust serves POST /v1/customers/{key}/adjustments.
func (s *Room) adjust(c *serve.Call) (serve.Answer, error) {
	customer, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	key, err := request.IdempotencyKey(c.R.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	var in adjustmentRequest
	if err = request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	preview, err := c.Query.Flag("preview")
	if err != nil {
		return serve.Answer{}, err
	}
	id, at, err := in.check(key, preview)
	if err != nil {
		return serve.Answer{}, err
	}
	if preview {
		return s.previewAdjustment(c, customer, &in, at)
	}
	asked := locked.Adjustment{
		Cost: in.Cost, At: at, Reason: in.Reason,
		ID: model.NewID(request.OpAdjustment, id, in.Meter, strconv.FormatInt(in.Cost, 10), in.asked(), in.Reason),
	}
	ctx, cancel := s.ChargeInTime(c.R)
	defer cancel()
	if asked.Audit, err = auditedAdjustment(ctx, customer, id, &in); err != nil {
		return serve.Answer{}, err
	}
	body := client.Adjustment{Customer: customer, Meter: in.Meter, Cost: in.Cost, Reason: in.Reason}
	if at != 0 {
		if err := s.Accounts.CheckInstant(ctx, customer, at); err != nil {
			return serve.Answer{}, serve.OutOfTime(ctx, err)
		}
	}
	var done locked.Adjusted
	err = catalog.WhileStale(func(atLeast int64) (err error) {
		if asked.Target, err = s.Catalog.ResolveKnown(ctx, customer, in.Meter, atLeast); err == nil {
			done, err = s.Engine.From(c.From).Adjust(ctx, asked)
		}
		return err
	})
	err = serve.OutOfTime(ctx, err)
	s.Metrics.CountOperation(serve.NameAdjust, &model.Decision{Replayed: done.Replayed}, err)
	if errors.Is(err, locked.ErrFuture) {
		err = problem.Invalid("at", "must not be in the future, by the customer's clock")
	}
	if err != nil {
		return serve.Answer{}, serve.Explain(err, serve.Names{Customer: customer, Meter: in.Meter})
	}
	if asked.Target.Clock != nil {
		body.TestClock = asked.Target.Clock.Key
	}
	body.At, body.Replayed = respond.Time(done.At), done.Replayed
	return serve.Answer{Status: serve.PutStatus(!done.Replayed), Body: body}, nil
}

// previewAdjustment answers the line that an adjustment would make.
func (s *Room) previewAdjustment(c *serve.Call, customer string, in *adjustmentRequest, at int64) (serve.Answer, error) {
	line, clock, err := s.Invoices.Preview(c.Ctx(), invoices.Preview{Customer: customer, Meter: in.Meter, Cost: in.Cost, At: at})
	if err != nil {
		return serve.Answer{}, serve.Explain(err, serve.Names{Customer: customer, Meter: in.Meter})
	}
	body := showLine(&line)
	body.TestClock = clock
	return serve.Answer{Status: http.StatusOK, Body: body}, nil
}

var previewParam = apidoc.Param{
	Name: "preview", Type: "string",
	Doc: "With `true` nothing is written. The answer is the line that the adjustment would make.", Enum: []string{"true", "false"},
}

func (s *Room) adjustmentRoutes() []serve.Route {
	return []serve.Route{{Operation: apidoc.Operation{
		Method: "POST", Pattern: "/v1/customers/{key}/adjustments", Access: apidoc.AdminOnly, Tag: "Customers", ID: "adjust", Summary: "Correct a customer's usage",
		Params:  []apidoc.Param{previewParam},
		Request: reflect.TypeFor[client.AdjustmentRequest](), Response: reflect.TypeFor[client.Adjustment](), Preview: reflect.TypeFor[client.Line](),
		Status:   serve.Put200or201,
		Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict, problem.KindIDReused, problem.KindUnderWay, problem.KindArchived},
		IDHeader: request.IdempotencyHeader,
	}, Handle: s.adjust}}
}

type adjustmentAudit struct {
	Meter  string `json:"meter"`
	Cost   int64  `json:"cost"`
	At     string `json:"at,omitempty"` // as it was asked for
	Reason string `json:"reason"`
}

// auditedAdjustment is the entry of an adjustment, which the engine writes with it.
func auditedAdjustment(ctx context.Context, customer, id string, in *adjustmentRequest) (*locked.Audit, error) {
	by, acts := plans.ActorOf(ctx)
	if !acts {
		return nil, nil //nolint:nilnil // quotad itself is not audited
	}
	change := plans.Audited{
		Action: plans.AuditCreate, Target: "customers/" + customer + "/adjustments/" + id,
		After: adjustmentAudit{in.Meter, in.Cost, in.asked(), in.Reason},
	}
	_, after, err := change.Documents()
	return &locked.Audit{
		Actor: by.By, Request: by.Request, Action: change.Action, Subject: plans.Subject(change.Target), Target: change.Target, After: after,
	}, err
}
