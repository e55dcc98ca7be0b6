package quota

import (
	"context"
	"errors"
	"sync"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// The customer's worker does the following operations on locked rows.

// worker returns the worker that does a target's operations.
func (e *Engine) worker(t *model.Target) *locked.Worker {
	return e.workers[e.laneOf(t)]
}

// Refund returns units; see locked.Refund.
func (s Sender) Refund(ctx context.Context, r locked.Refund) (locked.Refunded, error) {
	return s.engine.worker(r.Target).Refund(ctx, s.id, r)
}

// SetLevel sets the level of a level meter; see locked.SetLevel.
func (s Sender) SetLevel(ctx context.Context, t *model.Target, level int64) (model.Decision, error) {
	d, err := s.engine.worker(t).SetLevel(ctx, s.id, t, level)
	s.engine.count(&queue.Result{Decision: d, Err: err})
	return d, err
}

// Reserve charges units until they are committed or released; see locked.Reserve.
func (s Sender) Reserve(ctx context.Context, t *model.Target, cost, ttl int64, id model.ID) (locked.Reservation, error) {
	done, err := s.engine.worker(t).Reserve(ctx, s.id, t, cost, ttl, id)
	s.engine.count(&queue.Result{Decision: done.Decision, Err: err})
	return done, err
}

// Commit books units of a reservation as usage; see locked.Commit.
func (s Sender) Commit(ctx context.Context, t *model.Target, r locked.ReservationID, cost int64) (locked.Settled, error) {
	return s.engine.worker(t).Commit(ctx, s.id, t, r, cost)
}

// CommitOverrun books units that were spent already; see locked.CommitOverrun.
func (s Sender) CommitOverrun(ctx context.Context, t *model.Target, r locked.ReservationID, cost int64) (locked.Settled, error) {
	return s.engine.worker(t).CommitOverrun(ctx, s.id, t, r, cost)
}

// Release releases a reservation; see locked.Release.
func (s Sender) Release(ctx context.Context, t *model.Target, r locked.ReservationID) (locked.Settled, error) {
	return s.engine.worker(t).Release(ctx, s.id, t, r)
}

// Expire removes the expired holds of a target's counters; see locked.Expire.
func (e *Engine) Expire(ctx context.Context, t *model.Target) error {
	return e.worker(t).Expire(ctx, t)
}

// Notify raises the thresholds that customers' own counters have reached since their limits were edited; see
// locked.Worker.Notify. It skips stale targets, because a newer change of them will follow. It returns the first
// error.
func (e *Engine) Notify(ctx context.Context, targets []*model.Target) (first error) {
	waiting := make([]func(context.Context) error, len(targets))
	for i, t := range targets {
		waiting[i] = e.worker(t).Notify(t)
	}
	for _, wait := range waiting {
		err := wait(ctx)
		if _, stale := errors.AsType[*model.StaleError](err); err != nil && !stale && first == nil {
			first = err
		}
	}
	return first
}

// Adjust corrects usage; see locked.Adjust.
func (s Sender) Adjust(ctx context.Context, a locked.Adjustment) (locked.Adjusted, error) {
	return s.engine.worker(a.Target).Adjust(ctx, s.id, a)
}

// Fence ensures that hits charged to customers' own counters from now on are judged at an instant or later; see
// locked.Fence. It returns an error or nil for each customer, in their order.
func (e *Engine) Fence(ctx context.Context, fences []locked.Fence) []error {
	type share struct {
		fences []locked.Fence
		places []int
	}
	shares := make([]share, len(e.workers))
	for i, f := range fences {
		s := &shares[e.laneOf(f.Target)]
		s.fences, s.places = append(s.fences, f), append(s.places, i)
	}
	errs := make([]error, len(fences))
	var all sync.WaitGroup
	for i, s := range shares {
		all.Go(func() {
			for n, err := range e.workers[i].Fence(ctx, s.fences) {
				errs[s.places[n]] = err
			}
		})
	}
	all.Wait()
	return errs
}

// BringBack sets counters back that are ahead of the clock; see locked.Worker.BringBack. It returns the result
// of each counter, in their order.
func (e *Engine) BringBack(ctx context.Context, counters []locked.Ahead) []locked.Brought {
	all := make([]locked.Brought, len(counters))
	shares, places := make([][]locked.Ahead, len(e.workers)), make([][]int, len(e.workers))
	for i, c := range counters {
		lane := e.laneOf(c.Target)
		shares[lane], places[lane] = append(shares[lane], c), append(places[lane], i)
	}
	for lane, share := range shares {
		for n, b := range e.workers[lane].BringBack(ctx, share) {
			all[places[lane][n]] = b
		}
	}
	return all
}

// ImportAll does each import separately. Imports of one customer and meter are done in their order. An error is
// one of locked.Import's.
func (s Sender) ImportAll(ctx context.Context, imports []locked.Import) []locked.Imported {
	waiting := make([]func(context.Context, bool) locked.Imported, len(imports))
	for i := range imports {
		waiting[i] = s.engine.worker(imports[i].Target).Import(s.id, &imports[i])
	}
	results := make([]locked.Imported, len(imports))
	for i, wait := range waiting {
		results[i] = wait(ctx, ctx.Err() == nil) // one grace is enough for all
	}
	return results
}

// DecideTogether decides hits of any customers and meters and admits either all of them or none; see
// locked.DecideTogether.
func (s Sender) DecideTogether(ctx context.Context, hits []model.Hit) (results []model.Decision, together bool, err error) {
	if len(hits) == 0 {
		return nil, true, nil
	}
	results, together, err = s.engine.worker(hits[0].Target).DecideTogether(ctx, s.id, hits)
	for i := range hits {
		if err == nil && !hits[i].Looks() {
			s.engine.count(&queue.Result{Decision: results[i]})
		}
	}
	return results, together, err
}
