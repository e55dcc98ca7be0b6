package quota

import (
	"context"
	"slices"
	"sync/atomic"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// DecideAll decides many hits, each for itself; those on the same counters as if they came
// one after the other. A look sees what the hits before it were charged.
// One with an ID that was admitted before is replayed, charged once; its errors are also
// ErrOtherPayload, ErrRefunded and ErrUnderWay. An overrun is always charged.
func (s Sender) DecideAll(ctx context.Context, hits []model.Hit) []queue.Result {
	e, results := s.engine, make([]queue.Result, len(hits))
	// All of them in one way, or those on one counter would not come in their order.
	decide := s.decideMany
	if slices.ContainsFunc(hits, func(h model.Hit) bool { return (h.ID.Given() || h.Overrun) && !h.Looks() }) {
		decide = s.decideManyOnce
	}
	for i := 0; i < len(hits); {
		end, looks := i, hits[i].Looks()
		for end < len(hits) && hits[end].Looks() == looks {
			end++
		}
		if looks {
			e.lookAll(ctx, hits[i:end], results[i:end])
		} else {
			decide(ctx, hits[i:end], results[i:end])
			for r := range results[i:end] {
				e.count(&results[i+r])
			}
		}
		i = end
	}
	return results
}

func (s Sender) decideManyOnce(ctx context.Context, hits []model.Hit, results []queue.Result) {
	waiting := make([]locked.Once, len(hits))
	for i := range hits {
		waiting[i] = s.engine.worker(hits[i].Target).Submit(s.id, &hits[i])
	}
	for i := range waiting {
		results[i] = waiting[i].Wait(ctx)
	}
}

// decideMany hands hits to their lanes all at once, and waits until the last one is decided.
func (s Sender) decideMany(ctx context.Context, hits []model.Hit, results []queue.Result) {
	e, together, done := s.engine, new(atomic.Int32), make(chan struct{}, 1)
	together.Store(1) // for itself, until all are on their way
	all := make([]queue.Hit, len(hits))
	queues := make([][]*queue.Hit, len(e.lanes))
	now, usable := e.memoryNow(ctx)
	for i := range hits {
		target, cost := hits[i].Target, hits[i].Cost
		if usable {
			if d, ok := e.refuse(target, now, cost); ok {
				results[i].Decision = d
				continue
			}
		}
		lane := e.laneOf(target)
		h := &all[i]
		h.From, h.Target, h.Cost = s.id, target, cost
		h.Session, h.Done, h.Together = &e.lanes[lane].Session, done, together
		queues[lane] = append(queues[lane], h)
	}
	for lane, waiting := range queues {
		if len(waiting) == 0 {
			continue
		}
		together.Add(int32(len(waiting)))
		added, err := e.lanes[lane].Enqueue(e.options.MaxQueue, waiting...)
		for _, h := range waiting[added:] {
			h.Finish(queue.Result{Err: err})
		}
	}
	if together.Add(-1) > 0 {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	for i := range all {
		if h := &all[i]; h.Target != nil {
			if err := h.Leave(ctx, 0); err != nil {
				results[i].Err = err
			} else {
				results[i] = h.Result
			}
		}
	}
}
