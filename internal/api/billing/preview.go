package billing

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// previewRequest is a client.PreviewRequest with a parsed instant.
type previewRequest struct {
	Plan        *string            `json:"plan"`
	PlanVersion *int               `json:"plan_version"`
	Change      string             `json:"change"`
	EndsAt      instantOrPeriodEnd `json:"ends_at"`
}

// previewBody is a client.Preview whose limits are encoded by the same code as in responses to hits.
type previewBody struct {
	At       time.Time        `json:"at"`
	Invoice  *client.Invoice  `json:"invoice"`
	Upcoming *client.Invoice  `json:"upcoming"`
	Limits   json.MarshalerTo `json:"limits"`
}

// trial returns the requested change of the trial.
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

func (s *Room) preview(c *serve.Call, in previewRequest) (body previewBody, err error) {
	t, err := in.trial()
	if err != nil {
		return body, err
	}
	limits := func(ctx context.Context, tx pgx.Tx) (err error) {
		body.Limits, err = s.Limits(ctx, tx, c.Key, c.Ctx().Err)
		return err
	}
	p, err := s.Closing.Preview(c.Ctx(), c.Key, t, limits)
	if err == nil && t.Waits() { // show the limits of the plan, although they do not apply yet
		soon := *t
		soon.Change = plans.ChangeLimitsNow
		err = s.Accounts.Try(c.Ctx(), c.Key, &soon, func(ctx context.Context, tx pgx.Tx, _, _ int64) error { return limits(ctx, tx) })
	}
	if err != nil {
		return body, err
	}
	body.At, body.Invoice, body.Upcoming = respond.Time(p.At), invoiceOrNull(p.Invoice), invoiceOrNull(p.Upcoming)
	return body, nil
}

func invoiceOrNull(i *billing.Invoice) *client.Invoice {
	if i == nil {
		return nil
	}
	shown := showInvoice(i)
	return &shown
}

func (s *Room) previewRoutes() []serve.Route {
	return serve.Tagged("Customers", serve.Act(apidoc.AdminOnly, "/v1/customers/{key}/preview", "customers.preview", "See what a change of plan would cost",
		s.preview, serve.Same).Described(client.PreviewRequest{}, client.Preview{}).Fails(refused...).Reading())
}
