package quota

import (
	"context"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// Sender decides hits and does operations, as the Engine does, for one sender. Its requests wait
// in a line of their own.
type Sender struct {
	engine *Engine
	id     queue.SenderID
}

// From is the sender of a name.
func (e *Engine) From(id queue.SenderID) Sender { return Sender{engine: e, id: id} }

// Decide admits and charges one hit, or refuses it and charges nothing.
//
// Errors: ErrShare, ErrBusy, ErrUnavailable, ErrNoSession, ErrInternal, ErrStopped and *StaleError,
// nothing was charged; ErrOutcomeUnknown, also when ctx ended after the hit was sent.
func (s Sender) Decide(ctx context.Context, t *model.Target, cost int64) (model.Decision, error) {
	e := s.engine
	if cost == 0 {
		return e.Look(ctx, t, 0)
	}
	if now, ok := e.memoryNow(ctx); ok {
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
