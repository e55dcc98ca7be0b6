package api

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/billing/invoices"
	"quotad/internal/calendar"
	"quotad/internal/plans"
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
	if wrong := checkText(in.Reason, true); wrong != "" {
		refuse("reason", wrong)
	}
	if in.At != "" {
		if at, err = calendar.ParseInstant(in.At); err != nil {
			refuse("at", "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
		} else if at == 0 {
			refuse("at", "must be after 1970-01-01T00:00:00Z")
		}
	}
	own := ""
	if in.ID != nil {
		own = *in.ID
		if wrong := checkID(own); wrong != "" {
			refuse("id", wrong)
		}
	} else if key == "" && !preview {
		refuse("id", "is required, here or as the header Idempotency-Key, so that an adjustment that is sent again is made once")
	}
	if len(bad) > 0 {
		return "", 0, problem.InvalidFields(bad)
	}
	id, err = oneID(own, key)
	return id, at, err
}

// adjust serves POST /v1/customers/{key}/adjustments.
func (s *Server) adjust(c *call) (answer, error) {
	customer, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	key, err := idempotencyKey(c.r.Header)
	if err != nil {
		return answer{}, err
	}
	var in adjustmentRequest
	if err = decode(c.body, &in); err != nil {
		return answer{}, err
	}
	preview, err := c.query.flag("preview")
	if err != nil {
		return answer{}, err
	}
	id, at, err := in.check(key, preview)
	if err != nil {
		return answer{}, err
	}
	if preview {
		return s.previewAdjustment(c, customer, &in, at)
	}
	asked := locked.Adjustment{
		Cost: in.Cost, At: at, Reason: in.Reason,
		ID: model.NewID(opAdjustment, id, in.Meter, strconv.FormatInt(in.Cost, 10), in.At, in.Reason),
	}
	if asked.Audit, err = auditedAdjustment(c.ctx(), customer, id, &in); err != nil {
		return answer{}, err
	}
	body := client.Adjustment{Customer: customer, Meter: in.Meter, Cost: in.Cost, Reason: in.Reason}
	if at != 0 {
		if err := s.accounts.CheckInstant(c.ctx(), customer, at); err != nil {
			return answer{}, err
		}
	}
	var done locked.Adjusted
	err = whileStale(func(atLeast int64) (err error) {
		if asked.Target, err = s.catalog.ResolveKnown(c.ctx(), customer, in.Meter, atLeast); err == nil {
			done, err = s.engine.From(c.from).Adjust(c.ctx(), asked)
		}
		return err
	})
	s.metrics.countOperation(nameAdjust, &model.Decision{Replayed: done.Replayed}, err)
	if errors.Is(err, locked.ErrFuture) {
		err = problem.Invalid("at", "must not be in the future, by the customer's clock")
	}
	if err != nil {
		return answer{}, explain(err, names{customer: customer, meter: in.Meter})
	}
	if asked.Target.Clock != nil {
		body.TestClock = asked.Target.Clock.Key
	}
	body.At, body.Replayed = timeOf(done.At), done.Replayed
	return answer{status: putStatus(!done.Replayed), body: body}, nil
}

// previewAdjustment answers the line that an adjustment would make.
func (s *Server) previewAdjustment(c *call, customer string, in *adjustmentRequest, at int64) (answer, error) {
	line, clock, err := s.invoices.Preview(c.ctx(), invoices.Preview{Customer: customer, Meter: in.Meter, Cost: in.Cost, At: at})
	if err != nil {
		return answer{}, explain(err, names{customer: customer, meter: in.Meter})
	}
	body := showLine(&line)
	body.TestClock = clock
	return answer{status: http.StatusOK, body: body}, nil
}

var previewParam = apidoc.Param{Name: "preview", Type: "string", Doc: "With `true` nothing is written. The answer is the line that the adjustment would make.", Enum: []string{"true", "false"}}

func adjustmentRoutes() []route {
	return []route{{Operation: apidoc.Operation{
		Method: "POST", Pattern: "/v1/customers/{key}/adjustments", Access: apidoc.AdminOnly, Tag: "Customers", ID: "adjust", Summary: "Correct a customer's usage",
		Params:  []apidoc.Param{previewParam},
		Request: reflect.TypeFor[client.AdjustmentRequest](), Response: reflect.TypeFor[client.Adjustment](), Preview: reflect.TypeFor[client.Line](), Status: put200or201,
		Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict, problem.KindIDReused, problem.KindUnderWay}, IDHeader: idempotencyHeader,
	}, handle: (*Server).adjust}}
}
