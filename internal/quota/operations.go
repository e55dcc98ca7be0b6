package quota

import (
	"context"
	"sync"

	"quotad/internal/quota/ledger"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// What is done on locked rows, by the ledger of the customer.

// ledger is the one that does a target's operations.
func (e *Engine) ledger(t *model.Target) *ledger.Ledger {
	return e.ledgers[e.laneOf(t)]
}

// Refund gives units back; see ledger.Refund.
func (s Sender) Refund(ctx context.Context, r ledger.Refund) (ledger.Refunded, error) {
	return s.engine.ledger(r.Target).Refund(ctx, s.id, r)
}

// Reserve charges units until they are committed or given back; see ledger.Reserve.
func (s Sender) Reserve(ctx context.Context, t *model.Target, cost, ttl int64, id model.ID) (ledger.Reservation, error) {
	done, err := s.engine.ledger(t).Reserve(ctx, s.id, t, cost, ttl, id)
	s.engine.count(&queue.Result{Decision: done.Decision, Err: err})
	return done, err
}

// Commit books units of a reservation as usage; see ledger.Commit.
func (s Sender) Commit(ctx context.Context, t *model.Target, r ledger.ReservationID, cost int64) (ledger.Settled, error) {
	return s.engine.ledger(t).Commit(ctx, s.id, t, r, cost)
}

// CommitOverrun books units that have been spent already; see ledger.CommitOverrun.
func (s Sender) CommitOverrun(ctx context.Context, t *model.Target, r ledger.ReservationID, cost int64) (ledger.Settled, error) {
	return s.engine.ledger(t).CommitOverrun(ctx, s.id, t, r, cost)
}

// Release gives a reservation back; see ledger.Release.
func (s Sender) Release(ctx context.Context, t *model.Target, r ledger.ReservationID) (ledger.Settled, error) {
	return s.engine.ledger(t).Release(ctx, s.id, t, r)
}

// Expire takes off what has expired of the holds of a target's counters; see ledger.Expire.
func (e *Engine) Expire(ctx context.Context, t *model.Target) error {
	return e.ledger(t).Expire(ctx, t)
}

// Adjust corrects usage; see ledger.Adjust.
func (s Sender) Adjust(ctx context.Context, a ledger.Adjustment) (ledger.Adjusted, error) {
	return s.engine.ledger(a.Target).Adjust(ctx, s.id, a)
}

// Fence makes sure that what is charged to customers' own counters from now on is judged at an
// instant or later; see ledger.Fence. It returns an error or nil for each, in their order.
func (e *Engine) Fence(ctx context.Context, fences []ledger.Fence) []error {
	type share struct {
		fences []ledger.Fence
		places []int
	}
	shares := make([]share, len(e.ledgers))
	for i, f := range fences {
		s := &shares[e.laneOf(f.Target)]
		s.fences, s.places = append(s.fences, f), append(s.places, i)
	}
	errs := make([]error, len(fences))
	var all sync.WaitGroup
	for i, s := range shares {
		all.Go(func() {
			for n, err := range e.ledgers[i].Fence(ctx, s.fences) {
				errs[s.places[n]] = err
			}
		})
	}
	all.Wait()
	return errs
}

// ImportAll does imports, each for itself and those of one customer and meter in their
// order. An error is one of ledger.Import's.
func (s Sender) ImportAll(ctx context.Context, imports []ledger.Import) []ledger.Imported {
	waiting := make([]func(context.Context) ledger.Imported, len(imports))
	for i := range imports {
		waiting[i] = s.engine.ledger(imports[i].Target).Import(s.id, &imports[i])
	}
	results := make([]ledger.Imported, len(imports))
	for i, wait := range waiting {
		results[i] = wait(ctx)
	}
	return results
}

// DecideTogether decides hits of whatever customers and meters, all or none; see
// ledger.DecideTogether.
func (s Sender) DecideTogether(ctx context.Context, hits []model.Hit) (results []model.Decision, together bool, err error) {
	if len(hits) == 0 {
		return nil, true, nil
	}
	results, together, err = s.engine.ledger(hits[0].Target).DecideTogether(ctx, s.id, hits)
	for i := range hits {
		if err == nil && !hits[i].Looks() {
			s.engine.count(&queue.Result{Decision: results[i]})
		}
	}
	return results, together, err
}
