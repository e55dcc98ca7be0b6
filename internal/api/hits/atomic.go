package hits

import (
	"context"
	"errors"
	"fmt"
	"math"

	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// decideTogether decides an atomic batch: either all hits are charged, or no hit is charged and every result is
// a refusal. An error concerns the whole batch, and then nothing was charged unless the error reports an unknown
// outcome. An outage admits nothing.
func (s *Room) decideTogether(ctx context.Context, from quota.Sender, hits []hit, results []queue.Result) error {
	if err := faultsOf(results); err != nil || len(hits) == 0 {
		return err
	}
	return catalog.WhileStale(func(atLeast int64) error {
		batch, err := s.targets(ctx, hits, atLeast)
		if err != nil {
			return err
		}
		decisions, together, err := from.DecideTogether(ctx, batch)
		if err != nil {
			return explainBarred(s.barred(ctx, err), hits, batch)
		}
		for i := range decisions {
			results[i].Decision = decisions[i]
			results[i].Decision.Allowed = decisions[i].Allowed && together
		}
		return nil
	})
}

// explainBarred adds to an error the customer that is suspended or has ended, if only one customer can be meant.
func explainBarred(err error, hits []hit, batch []model.Hit) error {
	of := -1
	for i := range batch {
		switch why := batch[i].Target.Barred(math.MaxInt64); {
		case why == nil || !errors.Is(err, why):
		case of >= 0 && hits[of].Customer != hits[i].Customer:
			return err
		default:
			of = i
		}
	}
	if of < 0 {
		return err
	}
	return serve.Explain(err, hits[of].names())
}

// ofHit returns the path of a field of a batch's i-th hit. For an empty field it returns the path of the hit.
func ofHit(i int, field string) string {
	if field == "" {
		return fmt.Sprintf("hits[%d]", i)
	}
	return fmt.Sprintf("hits[%d].%s", i, field)
}

// faultsOf joins the errors of all invalid hits into one problem. It returns nil if no hit has an error. It
// returns an error of another kind alone.
func faultsOf(results []queue.Result) error {
	var bad model.FieldErrors
	for i := range results {
		if results[i].Err == nil {
			continue
		}
		f := problem.Of(results[i].Err)
		if f.Kind != problem.KindInvalid {
			return results[i].Err
		}
		for _, e := range f.Fields {
			bad = append(bad, model.FieldError{Field: ofHit(i, e.Field), Detail: e.Detail})
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return problem.InvalidFields(bad)
}

// targets returns the hits with their targets as of change atLeast or later. Hits without a target are reported
// together in one problem.
func (s *Room) targets(ctx context.Context, hits []hit, atLeast int64) ([]model.Hit, error) {
	batch := make([]model.Hit, len(hits))
	var bad model.FieldErrors
	for i := range hits {
		h := &hits[i]
		t, err := s.target(ctx, h, atLeast)
		switch {
		case err == nil:
			batch[i] = h.of(t)
		case errors.Is(err, plans.ErrUnknownCustomer):
			bad = append(bad, model.FieldError{Field: ofHit(i, "customer"), Detail: serve.Explain(err, h.names()).Error()})
		case errors.Is(err, plans.ErrUnknownMeter), errors.Is(err, plans.ErrNotInPlan):
			bad = append(bad, model.FieldError{Field: ofHit(i, "meter"), Detail: serve.Explain(err, h.names()).Error()})
		default:
			return nil, err
		}
	}
	if len(bad) > 0 {
		return nil, problem.InvalidFields(bad)
	}
	return batch, nil
}
