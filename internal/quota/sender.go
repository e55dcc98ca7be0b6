package quota

import (
	"context"
	"slices"
	"sync/atomic"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// Sender decides hits and does operations like the Engine, on behalf of one sender. Its requests wait in a queue
// of their own.
type Sender struct {
	engine *Engine
	id     queue.SenderID
}

// From returns the sender of a name.
func (e *Engine) From(id queue.SenderID) Sender { return Sender{engine: e, id: id} }

// Decide admits and charges one hit, or refuses the hit and charges nothing.
//
// If the error is ErrShare, ErrBusy, ErrUnavailable, ErrNoSession, ErrInternal, ErrStopped, a *StaleError or the
// error that bars the target, nothing was charged. ErrOutcomeUnknown, which Decide also returns if ctx ended
// after the hit was sent, means that the hit may have been charged.
func (s Sender) Decide(ctx context.Context, t *model.Target, cost int64) (model.Decision, error) {
	e := s.engine
	if cost == 0 {
		return e.Look(ctx, t, 0)
	}
	if t.Level {
		r := e.worker(t).Submit(s.id, &model.Hit{Target: t, Cost: cost}).Wait(ctx, true)
		e.count(&r)
		return r.Decision, r.Err
	}
	if now, ok := e.memoryNow(ctx); ok {
		if err := t.Barred(t.Instant(now)); err != nil {
			return model.Decision{}, err
		}
		if d, ok := e.refuse(t, now, cost); ok {
			e.count(&queue.Result{Decision: d})
			return d, nil
		}
	}
	lane := e.lanes[e.laneOf(t)]
	h := queue.NewHit(&lane.Session, s.id, t, cost)
	if _, err := lane.Enqueue(e.options.MaxQueue, h); err != nil {
		return model.Decision{}, err
	}
	r := h.Wait(ctx)
	e.count(&r)
	return r.Decision, r.Err
}

// DecideAll decides many hits independently. Hits on the same counters are decided as if they came one after the
// other, and a look includes the charges of the hits before it. A hit with an ID that was admitted before is
// replayed and charged once. Its errors may also be ErrOtherPayload, ErrRefunded and ErrUnderWay. An overrun is
// always charged. A hit on a level meter changes the held level, which only the worker does.
func (s Sender) DecideAll(ctx context.Context, hits []model.Hit) []queue.Result {
	e, results := s.engine, make([]queue.Result, len(hits))
	// All hits are sent the same way, because hits on one counter would otherwise lose their order.
	decide := s.decideMany
	if slices.ContainsFunc(hits, func(h model.Hit) bool { return (h.ID.Given() || h.Overrun || h.Target.Level) && !h.Looks() }) {
		decide = s.decideManyOnce
	}
	for i := 0; i < len(hits); {
		end, looks := i, hits[i].Looks()
		for end < len(hits) && hits[end].Looks() == looks {
			end++
		}
		if looks {
			e.lookAll(ctx, hits[i:end], results[i:end])
			barLooks(hits[i:end], results[i:end])
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
		results[i] = waiting[i].Wait(ctx, ctx.Err() == nil) // one grace is enough for all
	}
}

// decideMany sends all hits to their lanes at once and waits for the last decision.
func (s Sender) decideMany(ctx context.Context, hits []model.Hit, results []queue.Result) {
	e, together, done := s.engine, new(atomic.Int32), make(chan struct{}, 1)
	together.Store(1) // for itself, until all are on their way
	all := make([]queue.Hit, len(hits))
	queues := make([][]*queue.Hit, len(e.lanes))
	now, usable := e.memoryNow(ctx)
	for i := range hits {
		target, cost := hits[i].Target, hits[i].Cost
		if usable {
			if results[i].Err = target.Barred(target.Instant(now)); results[i].Err != nil {
				continue
			}
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

// laneOf returns the index of a customer's lane and worker. There are as many workers as lanes.
func (e *Engine) laneOf(t *model.Target) int {
	return int(model.Shard(t.Counters[0].Key.Customer)) % len(e.lanes)
}

// memoryNow returns the instant at which hits may be refused from memory. ok is false if no hit may be refused
// from memory. Without a clock, no hit is refused from memory, and the lane that charges the hit reports the
// error.
func (e *Engine) memoryNow(ctx context.Context) (now int64, ok bool) {
	if !e.options.MemoryUsable() {
		return 0, false
	}
	now, err := e.options.Now(ctx)
	return now, err == nil
}

// refuse refuses a hit from memory if the memory allows it.
func (e *Engine) refuse(t *model.Target, now, cost int64) (model.Decision, bool) {
	d, ok := e.node.Memory.Refuse(t, now, cost)
	if ok {
		e.node.Totals.FromMemory.Add(1)
		e.node.WatchAhead(t, 1, d.Ahead)
	}
	return d, ok
}

// count adds a decision to the totals, and a refusal to the statistic of denials. A replayed hit was counted
// when it was decided.
func (e *Engine) count(r *queue.Result) {
	switch {
	case r.Err != nil || r.Decision.Replayed:
	case r.Decision.Allowed:
		e.node.Totals.Admitted.Add(1)
	default:
		e.node.Totals.Refused.Add(1)
		hour, _ := r.Decision.Target.RunningHour(r.Decision.At)
		e.denials.add(&r.Decision, hour)
	}
}
