package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// askAgain is the time after which a repeated request for a plan is reported again, µs by the customer's
// clock.
const askAgain = int64(24 * time.Hour / time.Microsecond)

const (
	// askedOfLate finds a request of the last 24 hours by a customer on real time.
	askedOfLate = `
		SELECT r.at FROM customers c JOIN plan_requests r ON r.customer_id = c.id JOIN plans p ON p.id = r.plan_id
		WHERE c.key = $1 AND p.key = $2 AND c.plan_id <> p.id AND c.archived_at IS NULL AND c.test_clock_id IS NULL
			AND r.at > (extract(epoch FROM now()) * 1000000)::bigint - $3`
	planToAsk = `
		SELECT p.id, r.at FROM plans p LEFT JOIN plan_requests r ON r.plan_id = p.id AND r.customer_id = $2 WHERE p.key = $1`
	askForPlan = `
		INSERT INTO plan_requests (customer_id, plan_id, at) VALUES ($1, $2, $3)
		ON CONFLICT (customer_id, plan_id) DO UPDATE SET at = excluded.at`
	plansAsked = `
		SELECT p.key, r.at FROM plan_requests r JOIN plans p ON p.id = r.plan_id WHERE r.customer_id = $1 AND p.key <> $2
		ORDER BY r.at DESC, p.key LIMIT 100`
)

// RequestPlan reports by an event that a customer requests another plan, and changes nothing else. The
// same request is reported once in 24 hours. A repeated request returns the instant of the first request.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, and model.FieldErrors about plan.
func (s *Store) RequestPlan(ctx context.Context, customer, plan string) (is plans.PlanRequest, err error) {
	switch {
	case !plans.ValidCustomerKey(customer):
		return is, plans.ErrUnknownCustomer
	case !plans.ValidKey(plan):
		return is, model.FieldErrors{{Field: "plan", Detail: plans.KeyRule}}
	}
	// A repeated request does not queue among the writes.
	switch at, err := read(ctx, s, plans.ErrUnknownPlan, pgx.RowTo[int64], askedOfLate, customer, plan, askAgain); {
	case err == nil:
		return plans.PlanRequest{Plan: plan, At: time.UnixMicro(at).UTC()}, nil
	case !errors.Is(err, plans.ErrUnknownPlan):
		return is, err
	}
	type found struct {
		ID int32
		At *int64
	}
	err = s.Write(ctx, KindCustomer, customer, func(ctx context.Context, w *Writing) error {
		if _, _, err := w.scheduled(ctx, customer); err != nil {
			return err
		}
		c, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, customer)
		switch {
		case err != nil:
			return err
		case c.ArchivedAt != nil:
			return plans.ErrArchived
		case c.Plan == plan:
			return model.FieldErrors{{Field: "plan", Detail: "is the customer's plan already"}}
		}
		of, err := one(ctx, w, plans.ErrUnknownPlan, pgx.RowToStructByPos[found], planToAsk, plan, c.ID)
		if errors.Is(err, plans.ErrUnknownPlan) {
			return noSuchPlan(plan)
		}
		if err != nil {
			return err
		}
		at := w.InstantOf(c)
		if is.Plan = plan; of.At != nil && *of.At <= at && at < *of.At+askAgain {
			is.At = time.UnixMicro(*of.At).UTC()
			return errUnchanged
		}
		is.At = time.UnixMicro(at).UTC()
		if _, err = w.Exec(ctx, askForPlan, c.ID, of.ID, at); err == nil {
			err = w.tell(ctx, events.CustomerPlanRequested, c, client.EventData{Plan: plan})
		}
		if err != nil {
			return err
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditWrite(of.At == nil), Target: "customers/" + customer + "/plan-requests", Customer: c.ID, After: struct {
				Plan string `json:"plan"`
			}{plan},
		})
	})
	return is, err
}

// PlanRequests returns the newest 100 plans that a customer requested, except for its present plan.
// Errors: plans.ErrUnknownCustomer.
func (s *Store) PlanRequests(ctx context.Context, customer string) ([]plans.PlanRequest, error) {
	c, err := s.GetCustomer(ctx, customer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, plansAsked, c.ID, c.Plan)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (is plans.PlanRequest, err error) {
		var at int64
		err = row.Scan(&is.Plan, &at)
		is.At = time.UnixMicro(at).UTC()
		return is, err
	})
	return all, Classify(err)
}

// noSuchPlan returns the error of a request that names an unknown plan.
func noSuchPlan(key string) model.FieldErrors {
	return model.FieldErrors{{Field: "plan", Detail: "no such plan: write it first with PUT /v1/plans/" + key}}
}
