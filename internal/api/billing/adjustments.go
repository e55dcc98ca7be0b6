package billing

import (
	"context"
	"errors"
	"fmt"
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

// check returns the request's id and its instant, µs. Its error lists all faults of the request. key is the id
// in the header. A preview needs no id.
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

// asked returns the instant as the request contains it, or an empty string if the request has no instant.
func (in *adjustmentRequest) asked() string {
	if in.At == nil {
		return ""
	}
	return *in.At
}

// adjust serves POST /v1/customers/{key}/adjustments. It returns a client.Adjustment, or a client.Line for a
// preview.
func (s *Room) adjust(c *serve.Call, body client.AdjustmentRequest) (is any, replayed bool, err error) {
	in, preview := adjustmentRequest(body), c.Flag("preview")
	id, at, err := in.check(c.IdempotencyKey, preview)
	if err != nil {
		return nil, false, err
	}
	if preview {
		is, err = s.previewAdjustment(c, &in, at)
		return is, true, serve.Explain(err, serve.Names{Customer: c.Key, Meter: in.Meter})
	}
	asked := locked.Adjustment{
		Cost: in.Cost, At: at, Reason: in.Reason,
		ID: model.NewID(request.OpAdjustment, id, in.Meter, strconv.FormatInt(in.Cost, 10), in.asked(), in.Reason),
	}
	ctx, cancel := context.WithTimeout(c.Ctx(), s.DecideWithin)
	defer cancel()
	if asked.Audit, err = auditedAdjustment(ctx, c.Key, id, &in); err != nil {
		return nil, false, err
	}
	if at != 0 {
		if err := s.Accounts.CheckInstant(ctx, c.Key, at); err != nil {
			return nil, false, serve.OutOfTime(ctx, err)
		}
	}
	var done locked.Adjusted
	err = catalog.WhileStale(func(atLeast int64) (err error) {
		if asked.Target, err = s.Catalog.ResolveKnown(ctx, c.Key, in.Meter, atLeast); err == nil {
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
		return nil, false, serve.Explain(err, serve.Names{Customer: c.Key, Meter: in.Meter})
	}
	made := client.Adjustment{Customer: c.Key, Meter: in.Meter, Cost: in.Cost, Reason: in.Reason, At: respond.Time(done.At), Replayed: done.Replayed}
	if asked.Target.Clock != nil {
		made.TestClock = asked.Target.Clock.Key
	}
	return made, done.Replayed, nil
}

// previewAdjustment returns the invoice line that an adjustment would create.
func (s *Room) previewAdjustment(c *serve.Call, in *adjustmentRequest, at int64) (client.Line, error) {
	line, clock, err := s.Invoices.Preview(c.Ctx(), invoices.Preview{Customer: c.Key, Meter: in.Meter, Cost: in.Cost, At: at})
	body := showLine(&line)
	body.TestClock = clock
	return body, err
}

var previewParam = apidoc.Param{
	Name: "preview", Type: "string",
	Doc: "With `true` nothing is written. The answer is the line that the adjustment would make.", Enum: []string{"true", "false"},
}

func (s *Room) adjustmentRoutes() []serve.Route {
	adjust := serve.Post(apidoc.AdminOnly, "/v1/customers/{key}/adjustments", "adjustments.create", "Correct a customer's usage", s.adjust, serve.Same).
		Takes(previewParam).Keyed().Described(nil, client.Adjustment{}).
		Fails(problem.KindNotFound, problem.KindConflict, problem.KindIDReused, problem.KindUnderWay, problem.KindArchived)
	adjust.Preview = reflect.TypeFor[client.Line]()
	return serve.Tagged("Customers", adjust)
}

type adjustmentAudit struct {
	Meter  string `json:"meter"`
	Cost   int64  `json:"cost"`
	At     string `json:"at,omitempty"` // as the request contains it
	Reason string `json:"reason"`
}

// auditedAdjustment returns the audit entry of an adjustment. The engine writes the entry and the adjustment
// together.
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
