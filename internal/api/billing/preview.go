package billing

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// previewRequest is client.PreviewRequest with an instant that is read.
type previewRequest struct {
	Plan        *string            `json:"plan"`
	PlanVersion *int               `json:"plan_version"`
	Change      string             `json:"change"`
	EndsAt      instantOrPeriodEnd `json:"ends_at"`
}

// previewBody is client.Preview, with limits that are written by the code that answers hits.
type previewBody struct {
	At       time.Time        `json:"at"`
	Invoice  *client.Invoice  `json:"invoice"`
	Upcoming *client.Invoice  `json:"upcoming"`
	Limits   json.MarshalerTo `json:"limits"`
}

// trial is what is asked for.
func (in *previewRequest) trial() (*accounts.Trial, error) {
	t := &accounts.Trial{
		Version: in.PlanVersion, Change: in.Change, EndsAt: in.EndsAt.Micros(), PeriodEnd: in.EndsAt.periodEnd, BaseEnd: in.EndsAt.baseEnd,
	}
	ends := t.EndsAt != nil || t.PeriodEnd || t.BaseEnd
	var bad model.FieldErrors
	switch {
	case in.Plan == nil && !ends:
		bad = append(bad, model.FieldError{Field: "plan", Detail: "must be given, or ends_at"})
	case in.Plan != nil && ends:
		bad = append(bad, model.FieldError{Field: "ends_at", Detail: "must stand alone: preview a change of plan and an end of billing one by one"})
	case in.Plan != nil:
		t.Plan = *in.Plan
		if !plans.ValidKey(t.Plan) {
			bad = append(bad, model.FieldError{Field: "plan", Detail: plans.KeyRule})
		}
	case in.PlanVersion != nil || in.Change != "":
		bad = append(bad, model.FieldError{Field: "ends_at", Detail: "must stand alone: plan_version and change belong to a plan"})
	}
	switch in.Change {
	case "", plans.ChangeNow, plans.ChangeLimitsNow, plans.UntilPeriodEnd, plans.UntilBaseEnd:
	default:
		bad = append(bad, model.FieldError{Field: "change", Detail: `must be "now", "limits_now", "period_end" or "base_end"`})
	}
	if len(bad) > 0 {
		return nil, problem.InvalidFields(bad)
	}
	return t, nil
}

func (s *Room) preview(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	var in previewRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	t, err := in.trial()
	if err != nil {
		return serve.Answer{}, err
	}
	var body previewBody
	limits := func(ctx context.Context, tx pgx.Tx) (err error) {
		body.Limits, err = s.Limits(ctx, tx, key, c.Ctx().Err)
		return err
	}
	p, err := s.Closing.Preview(c.Ctx(), key, t, limits)
	if err == nil && t.Waits() { // the limits of the plan, though they do not count yet
		soon := *t
		soon.Change = plans.ChangeLimitsNow
		err = s.Accounts.Try(c.Ctx(), key, &soon, func(ctx context.Context, tx pgx.Tx, _, _ int64) error { return limits(ctx, tx) })
	}
	if err != nil {
		return serve.Answer{}, err
	}
	body.At, body.Invoice, body.Upcoming = respond.Time(p.At), invoiceOrNull(p.Invoice), invoiceOrNull(p.Upcoming)
	return serve.Answer{Status: http.StatusOK, Body: body}, nil
}

func invoiceOrNull(i *billing.Invoice) *client.Invoice {
	if i == nil {
		return nil
	}
	shown := showInvoice(i)
	return &shown
}

func (s *Room) previewRoute() serve.Route {
	return serve.Route{Operation: apidoc.Operation{
		Method: "POST", Pattern: "/v1/customers/{key}/preview", Access: apidoc.AdminOnly, Tag: "Customers", ID: "previewChange",
		Summary: "See what a change of plan would cost",
		Request: reflect.TypeFor[client.PreviewRequest](), Response: reflect.TypeFor[client.Preview](), Status: serve.OK200,
		Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
	}, Handle: s.preview, Reads: true}
}
