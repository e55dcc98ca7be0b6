package queue

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// SharedRows is how many rows a batch has at most while several senders wait, or one item that
// needs more by itself. A sender that comes next then waits for a short batch only.
const SharedRows = 250

// sharedFor is how many batches stay as short after several senders waited. A caller that waits
// for its answer before it sends again comes within these, and would else wait for a long batch
// each time.
const sharedFor = 16

// Inbox is the queue of a lane or a worker: callers add to it, and one goroutine takes batches
// from it. Each batch is one transaction.
//
// A batch takes one row of each sender's line in turn, see Lines.
type Inbox[T Item] struct {
	wake chan struct{} // holds one token when there is something to do
	over *atomic.Int64 // hits that were turned away, since their sender had its share

	Mu      sync.Mutex
	Stopped bool
	waiting Lines[T]
	short   int // how many batches stay short, see sharedFor
}

// NewInbox is an empty one, which adds the hits to over that it turns away since their sender
// has its share of the queue.
func NewInbox[T Item](over *atomic.Int64) Inbox[T] {
	return Inbox[T]{wake: make(chan struct{}, 1), over: over}
}

// Enqueue adds items of one sender after those of its that wait; most bounds how many hits
// wait. A sender may wait while it has fewer hits in the queue than there is room left. So one
// sender alone has half of the queue, and there is room for one that comes next.
//
// Enqueue returns how many items it added, and why not the others: ErrShare when the sender has
// its share, ErrBusy when nothing more can wait, ErrStopped when the engine stops.
func (b *Inbox[T]) Enqueue(most int, items ...T) (added int, err error) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Stopped {
		return 0, session.ErrStopped
	}
	q := &b.waiting
	l, idle := q.lineOf(items[0].Sender()), q.hits == 0
	for ; added < len(items); added++ {
		if n := items[added].Hits(); l.hits+n > most-q.hits-n+1 {
			err = b.turnAway(l, items[added:])
			break
		}
		q.add(l, items[added])
	}
	if len(l.items) == 0 {
		q.leave(q.at - 1) // it came just now
	}
	if idle && added > 0 {
		b.Signal()
	}
	return added, err
}

// turnAway says why items cannot wait behind those in a line.
func (b *Inbox[T]) turnAway(l *line[T], items []T) error {
	if l.hits == 0 {
		return session.ErrBusy
	}
	for _, it := range items {
		b.over.Add(int64(it.Hits()))
	}
	return session.ErrShare
}

// Take makes a batch: it hands items to load until there are no more, or the batch is full.
// load returns false for an item that does not fit into the batch; it takes at least the first
// one. The item then stays, and the rest of its line.
//
// While one sender waits alone, and has for some batches, load alone says when the batch is full.
func (b *Inbox[T]) Take(load func(T) bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	room := math.MaxInt
	switch {
	case len(b.waiting.ring) > 1:
		b.short, room = sharedFor, SharedRows
	case b.short > 0:
		b.short--
		room = SharedRows
	}
	b.waiting.Take(room, load)
}

// PutBack puts items of a batch back, each in front of its sender's line, in their order. They
// have waited: no bound holds for them.
func (b *Inbox[T]) PutBack(items ...T) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.waiting.putBack(items)
}

// PutLast moves the items that are late to the end of their lines, in their order.
func (b *Inbox[T]) PutLast(late func(T) bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.waiting.putLast(late)
}

// Queued is how many hits wait.
func (b *Inbox[T]) Queued() int {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.waiting.hits
}

// Signal wakes Run.
func (b *Inbox[T]) Signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Stop lets Run end once nothing waits.
func (b *Inbox[T]) Stop() {
	b.Mu.Lock()
	b.Stopped = true
	b.Mu.Unlock()
	b.Signal()
}

// Run calls next while anything waits, until Stop.
func (b *Inbox[T]) Run(next func()) {
	for {
		b.Mu.Lock()
		waiting, stopped := b.waiting.hits > 0, b.Stopped
		b.Mu.Unlock()
		switch {
		case waiting:
			next()
		case stopped:
			return
		default:
			<-b.wake
		}
	}
}

// Ticket says who has an operation now, its caller or a worker. By the ticket the caller hears
// that the operation has ended.
type Ticket struct {
	Session *session.Session // of the lane or worker that is to do the operation
	Done    chan struct{}    // receives once, when the result is set
	state   atomic.Int32     // ticketQueued and so on
	// Together is for a caller who waits for many tickets at once. It counts the tickets
	// without a result; all share Done, which receives when the last result is set. Nil: the
	// caller waits for this ticket alone.
	Together *atomic.Int32
}

// NewTicket is a ticket of an operation that the lane or worker of a session is to do.
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

// Group is hits on the same counters, in order of arrival.
type Group struct {
	Target       *model.Target
	Hits         []*Hit
	model.Series // what became of them
}

// Own is the key of the customer's own counter.
func (g *Group) Own() model.CounterKey { return g.Target.Counters[0].Key }

// Decide decides the group's hits when the customer's clock shows now, on rows as Series.Decide takes
// them: a later instant of a row wins. It sets the hits' results, and tells no caller: the lane or worker
// calls Finish when the charge is durable.
func (g *Group) Decide(rows []model.Row, now int64, buf []int64) {
	g.Costs = g.Costs[:0]
	for _, h := range g.Hits {
		g.Costs = append(g.Costs, h.Cost)
	}
	instant := now
	for i := range rows {
		instant = max(instant, rows[i].At)
	}
	g.Series.Decide(g.Target, rows, instant, buf, func(i int, d model.Decision) {
		d.Ahead = instant - now
		g.Hits[i].Result = Result{Decision: d}
	})
}

// Finish ends all hits: with an error, or with what decide said.
func (g *Group) Finish(err error) {
	for _, h := range g.Hits {
		if err != nil {
			h.Result = Result{Err: err}
		}
		h.Ring()
	}
}
