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

// Ticket is whose an operation is, and how its caller hears of its end.
type Ticket struct {
	Session *session.Session // that is to do it
	Done    chan struct{}    // receives once, when its result is set
	state   atomic.Int32
	// together counts those of a caller who waits for many at once and have no result yet:
	// done, which they share, receives when the last one has. Nil: it waits for this one.
	Together *atomic.Int32
}

// NewTicket is a ticket for what a session is to do.
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
	Target *model.Target
	Cost   int64
	Result Result
}

// hitPool is of hits whose callers have heard of them: no lane looks at one any more.
var hitPool = sync.Pool{New: func() any { return &Hit{Ticket: Ticket{Done: make(chan struct{}, 1)}} }}

// NewHit is a hit that Wait gives back.
func NewHit(s *session.Session, t *model.Target, cost int64) *Hit {
	h := hitPool.Get().(*Hit) //nolint:forcetypeassert // nothing else is in there
	*h = Hit{Ticket: Ticket{Session: s, Done: h.Done}, Target: t, Cost: cost}
	return h
}

// Whose an operation is. Its caller may take it back only while it is queued.
const (
	ticketQueued    = 0
	ticketTaken     = 1 // in a batch: it will be done, or not, whatever its caller does
	ticketAbandoned = 2 // the caller gave up, and it was in no batch: it leaves no trace
	ticketLeaving   = 3 // the caller gives up while it is in a batch, unless that ends soon
	ticketLeft      = 4 // the caller gave up while it was in a batch; not to be sent again
	ticketDone      = 5 // its result is set
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
	return h.Result // its bell may be ringing still
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

// Leave gives up when ctx has ended: what is in no batch leaves no trace; what is in one will
// be done or not, and its caller cannot know, unless that batch ends within grace. It returns
// nil when the result is set. Only who waits for one alone may give grace.
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
