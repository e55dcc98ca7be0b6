package quota

import (
	"context"
	"fmt"
	"sync/atomic"
)

// hit is one caller's hit on its way through a lane.
type hit struct {
	target *Target
	cost   int64
	lane   *lane
	done   chan struct{} // receives once, when result is set
	result Result
	state  atomic.Int32

	// What an earlier statement handed it back with.
	tries     int
	notBefore int64 // judge at this instant or later, µs
	insert    bool  // a row of its counters is missing
	book      bool  // the counter's hour is over
	alone     bool  // its group goes in a batch of its own
	postponed bool  // its batch had no statement left for it
}

// Whose a hit is. Its caller may take it back only while it is queued.
const (
	hitQueued    = 0
	hitTaken     = 1 // in a batch: it will be charged, or not, whatever its caller does
	hitAbandoned = 2 // the caller gave up while it was queued: it leaves no trace
	hitLeft      = 3 // the caller gave up while it was in a batch; not to be sent again
)

// take moves a queued hit into a batch; requeue moves it back, unless its caller left.
func (h *hit) take() bool    { return h.state.CompareAndSwap(hitQueued, hitTaken) }
func (h *hit) requeue() bool { return h.state.CompareAndSwap(hitTaken, hitQueued) }

// finish sets the result; nobody reads it when the caller left.
func (h *hit) finish(r Result) {
	h.result = r
	h.done <- struct{}{}
}

func fail(hits []*hit, err error) {
	for _, h := range hits {
		h.finish(Result{Err: err})
	}
}

// wait returns the hit's result. When ctx ends first, a hit that is in no batch leaves no
// trace; one that is will be charged or not, and its caller cannot know.
func (h *hit) wait(ctx context.Context) Result {
	select {
	case <-h.done:
		return h.result
	case <-ctx.Done():
	}
	for {
		select {
		case <-h.done:
			return h.result
		default:
		}
		switch {
		case h.state.CompareAndSwap(hitQueued, hitAbandoned):
			why := ErrBusy
			if h.lane.session.down.Load() {
				why = ErrUnavailable
			}
			return Result{Err: fmt.Errorf("%w: %w", why, ctx.Err())}
		case h.state.CompareAndSwap(hitTaken, hitLeft):
			return Result{Err: fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())}
		}
	}
}
