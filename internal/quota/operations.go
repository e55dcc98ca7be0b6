package quota

import (
	"context"

	"quotad/internal/quota/ledger"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// What is done on locked rows, by the ledger of the customer.

// ledger is the one that does a target's operations.
func (e *Engine) ledger(t *model.Target) *ledger.Ledger {
	return e.ledgers[int(model.Shard(t.Counters[0].Key.Customer))%len(e.ledgers)]
}

// Refund gives units back; see ledger.Refund.
func (e *Engine) Refund(ctx context.Context, r ledger.Refund) (ledger.Refunded, error) {
	return e.ledger(r.Target).Refund(ctx, r)
}

// Reserve charges units until they are committed or given back; see ledger.Reserve.
func (e *Engine) Reserve(ctx context.Context, t *model.Target, cost, ttl int64, id model.ID) (ledger.Reservation, error) {
	done, err := e.ledger(t).Reserve(ctx, t, cost, ttl, id)
	e.countDenied(&queue.Result{Decision: done.Decision, Err: err})
	return done, err
}

// Commit books units of a reservation as usage; see ledger.Commit.
func (e *Engine) Commit(ctx context.Context, t *model.Target, r ledger.ReservationID, cost int64) (ledger.Settled, error) {
	return e.ledger(t).Commit(ctx, t, r, cost)
}

// Release gives a reservation back; see ledger.Release.
func (e *Engine) Release(ctx context.Context, t *model.Target, r ledger.ReservationID) (ledger.Settled, error) {
	return e.ledger(t).Release(ctx, t, r)
}

// Expire takes off what has expired of the holds of a target's counters; see ledger.Expire.
func (e *Engine) Expire(ctx context.Context, t *model.Target) error {
	return e.ledger(t).Expire(ctx, t)
}

// Adjust corrects usage; see ledger.Adjust.
func (e *Engine) Adjust(ctx context.Context, a ledger.Adjustment) (ledger.Adjusted, error) {
	return e.ledger(a.Target).Adjust(ctx, a)
}

// ImportAll does imports, each for itself and those of one customer and meter in their
// order. An error is one of ledger.Import's.
func (e *Engine) ImportAll(ctx context.Context, imports []ledger.Import) []ledger.Imported {
	waiting := make([]func(context.Context) ledger.Imported, len(imports))
	for i := range imports {
		waiting[i] = e.ledger(imports[i].Target).Import(&imports[i])
	}
	results := make([]ledger.Imported, len(imports))
	for i, wait := range waiting {
		results[i] = wait(ctx)
	}
	return results
}

// DecideTogether decides hits of whatever customers and meters, all or none; see
// ledger.DecideTogether.
func (e *Engine) DecideTogether(ctx context.Context, hits []model.Hit) (results []model.Decision, together bool, err error) {
	if len(hits) == 0 {
		return nil, true, nil
	}
	results, together, err = e.ledger(hits[0].Target).DecideTogether(ctx, hits)
	for i := range results {
		if !hits[i].Looks() {
			e.countDenied(&queue.Result{Decision: results[i]})
		}
	}
	return results, together, err
}
