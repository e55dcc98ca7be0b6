package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// Ticket says who has an operation now, its caller or a worker. By the ticket the caller hears
// that the operation has ended.
type Ticket struct {
	Session *session.Session // of the lane or ledger that is to do the operation
	Done    chan struct{}    // receives once, when the result is set
	state   atomic.Int32     // ticketQueued and so on
	// Together is for a caller who waits for many tickets at once. It counts the tickets
	// without a result; all share Done, which receives when the last result is set. Nil: the
	// caller waits for this ticket alone.
	Together *atomic.Int32
}

// NewTicket is a ticket of an operation that the lane or ledger of a session is to do.
func NewTicket(s *session.Session) Ticket { return Ticket{Session: s, Done: make(chan struct{}, 1)} }

// Ring tells the caller that the result is set.
func (t *Ticket) Ring() {
	t.state.Store(ticketDone)
	if t.Together == nil || t.Together.Add(-1) == 0 {
		t.Done <- struct{}{}
	}
}

// Hit is one caller's hit on its way through a lane.
type Hit struct {
	Ticket
	From   SenderID
	Target *model.Target
	Cost   int64
	Result Result
}

// hitPool is of hits whose callers have heard of them: no lane looks at one any more.
var hitPool = sync.Pool{New: func() any { return &Hit{Ticket: Ticket{Done: make(chan struct{}, 1)}} }}

// NewHit is a hit that Wait gives back.
func NewHit(s *session.Session, from SenderID, t *model.Target, cost int64) *Hit {
	h := hitPool.Get().(*Hit) //nolint:forcetypeassert // nothing else is in there
	*h = Hit{Ticket: Ticket{Session: s, Done: h.Done}, From: from, Target: t, Cost: cost}
	return h
}

// Sender implements Item.
func (h *Hit) Sender() SenderID { return h.From }

// Hits implements Item.
func (h *Hit) Hits() int { return 1 }

// Rows implements Item: one for each counter.
func (h *Hit) Rows() int { return len(h.Target.Counters) }

// The states of a ticket. A caller can take an operation back only while it is queued.
const (
	ticketQueued    = 0
	ticketTaken     = 1 // in a batch: the worker does it or not, whatever the caller does
	ticketAbandoned = 2 // the caller gave up before any batch had it: it leaves no trace
	ticketLeaving   = 3 // in a batch; the caller gives up unless the batch ends soon
	ticketLeft      = 4 // the caller gave up while a batch had it; it must not be sent again
	ticketDone      = 5 // the result is set
)

// Take moves what is queued into a batch.
func (t *Ticket) Take() bool { return t.state.CompareAndSwap(ticketQueued, ticketTaken) }

// Requeue moves what was in a batch back, unless its caller has left.
func (t *Ticket) Requeue() bool {
	if t.state.CompareAndSwap(ticketTaken, ticketQueued) {
		return true
	}
	if t.state.CompareAndSwap(ticketLeaving, ticketAbandoned) {
		t.Done <- struct{}{}
	}
	return false
}

// Finish sets the result; nobody reads it when the caller left.
func (h *Hit) Finish(r Result) {
	h.Result = r
	h.Ring()
}

// Wait returns the result of a hit of NewHit. The hit must not be used afterwards.
func (h *Hit) Wait(ctx context.Context) Result {
	select {
	case <-h.Done:
		r := h.Result
		hitPool.Put(h)
		return r
	case <-ctx.Done():
	}
	if err := h.Leave(ctx, 0); err != nil {
		return Result{Err: err}
	}
	return h.Result // not put back into the pool: Ring may still be sending to Done
}

// Wait returns nil when the result is set. When ctx ends first, Wait returns what Leave returns.
func (t *Ticket) Wait(ctx context.Context, grace time.Duration) error {
	select {
	case <-t.Done:
		return nil
	case <-ctx.Done():
		return t.Leave(ctx, grace)
	}
}

// Leave gives up when ctx has ended. It returns nil when the result is set after all.
//
// An operation that no batch has taken leaves no trace. An operation in a batch is done or not,
// and its caller cannot know: that is ErrOutcomeUnknown. Leave waits for the batch at most grace.
// Only a caller who waits for this ticket alone may give a grace.
func (t *Ticket) Leave(ctx context.Context, grace time.Duration) error {
	if grace > 0 && t.state.CompareAndSwap(ticketTaken, ticketLeaving) {
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-t.Done:
		case <-late.C:
		}
	}
	for {
		switch {
		case t.state.Load() == ticketDone:
			return nil
		case t.state.Load() == ticketAbandoned, t.state.CompareAndSwap(ticketQueued, ticketAbandoned):
			return fmt.Errorf("%w: %w", t.Session.Why(), ctx.Err())
		case t.state.CompareAndSwap(ticketTaken, ticketLeft), t.state.CompareAndSwap(ticketLeaving, ticketLeft):
			return fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, ctx.Err())
		}
	}
}

// Result is a decision or why there is none.
type Result struct {
	Decision model.Decision
	Err      error
}
