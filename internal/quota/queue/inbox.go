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

// SharedRows is the maximum number of rows in a batch while several senders wait, except for a single item that
// needs more rows. A sender that arrives next then waits only for a short batch.
const SharedRows = 250

// sharedFor is the number of batches that stay short after several senders waited. Callers that wait for each
// response before they send again arrive within these batches, and would otherwise wait for a long batch each
// time.
const sharedFor = 16

// Inbox is the queue of a lane or a worker. Callers add items, and one goroutine takes batches of items. Each
// batch is one transaction.
//
// A batch takes one row from each sender's line in turn, see Lines.
type Inbox[T Item] struct {
	wake chan struct{} // contains one token if there is something to do
	over *atomic.Int64 // hits that were rejected because their sender had its share

	Mu      sync.Mutex
	Stopped bool
	waiting Lines[T]
	short   int // the number of batches that stay short, see sharedFor
}

// NewInbox returns an empty Inbox, which counts in over the hits that it rejects because their sender has its
// share of the queue.
func NewInbox[T Item](over *atomic.Int64) Inbox[T] {
	return Inbox[T]{wake: make(chan struct{}, 1), over: over}
}

// Enqueue adds items of one sender after the sender's waiting items. most is the maximum number of waiting hits. A
// sender may add hits while it has fewer hits in the queue than there is room left. Therefore a single sender
// fills at most half of the queue, and leaves room for the next sender.
//
// Enqueue returns the number of added items, and the reason why it rejected the others: ErrShare if the sender has
// its share, ErrBusy if the queue is full, or ErrStopped if the engine stops.
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
		q.leave(q.at - 1) // the line was added just now
	}
	if idle && added > 0 {
		b.Signal()
	}
	return added, err
}

// turnAway returns the reason why items cannot wait at the end of a line.
func (b *Inbox[T]) turnAway(l *line[T], items []T) error {
	if l.hits == 0 {
		return session.ErrBusy
	}
	for _, it := range items {
		b.over.Add(int64(it.Hits()))
	}
	return session.ErrShare
}

// Take makes a batch. It passes items to load until no items remain or the batch is full. load returns false if an
// item does not fit into the batch, and must accept at least the first item. A rejected item and the rest of its
// line stay in the queue.
//
// If only one sender waits and has been alone for some batches, load alone decides when the batch is full.
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

// PutBack returns items of a batch to the front of their senders' lines, in their order. Because the items have
// already waited, no limit applies to them.
func (b *Inbox[T]) PutBack(items ...T) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.waiting.putBack(items)
}

// PutLast moves the items for which late returns true to the end of their lines, in their order.
func (b *Inbox[T]) PutLast(late func(T) bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.waiting.putLast(late)
}

// Queued returns the number of waiting hits.
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

// Stop makes Run return as soon as nothing waits.
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

// Ticket records whether an operation belongs to its caller or to a worker, and notifies the caller of the
// operation's end.
type Ticket struct {
	Session *session.Session // the session of the lane or worker that will do the operation
	Done    chan struct{}    // receives once, when the result is set
	state   atomic.Int32     // ticketQueued and so on
	// Together serves callers that wait for many tickets at once. It counts the tickets without a result. All
	// these tickets share Done, which receives when the last result is set. If Together is nil, the caller waits
	// for this ticket alone.
	Together *atomic.Int32
}

// NewTicket returns a ticket of an operation that the lane or worker of a session will do.
func NewTicket(s *session.Session) Ticket { return Ticket{Session: s, Done: make(chan struct{}, 1)} }

// Ring notifies the caller that the result is set.
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

// hitPool contains hits whose callers have received the result. No lane uses such a hit any more.
var hitPool = sync.Pool{New: func() any { return &Hit{Ticket: Ticket{Done: make(chan struct{}, 1)}} }}

// NewHit returns a hit that Wait returns to the pool.
func NewHit(s *session.Session, from SenderID, t *model.Target, cost int64) *Hit {
	h := hitPool.Get().(*Hit) //nolint:forcetypeassert // the pool contains nothing else
	*h = Hit{Ticket: Ticket{Session: s, Done: h.Done}, From: from, Target: t, Cost: cost}
	return h
}

// Sender implements Item.
func (h *Hit) Sender() SenderID { return h.From }

// Hits implements Item.
func (h *Hit) Hits() int { return 1 }

// Rows implements Item. A hit has one row for each counter.
func (h *Hit) Rows() int { return len(h.Target.Counters) }

// The states of a ticket. A caller can withdraw an operation only while it is queued.
const (
	ticketQueued    = 0
	ticketTaken     = 1 // in a batch: the worker decides, whatever the caller does
	ticketAbandoned = 2 // the caller gave up before a batch took the operation, which leaves no trace
	ticketLeaving   = 3 // in a batch; the caller gives up unless the batch ends soon
	ticketLeft      = 4 // the caller gave up while the operation was in a batch; it must not be sent again
	ticketDone      = 5 // the result is set
)

// Take moves a queued operation into a batch.
func (t *Ticket) Take() bool { return t.state.CompareAndSwap(ticketQueued, ticketTaken) }

// Requeue returns an operation from a batch to the queue, unless its caller has left.
func (t *Ticket) Requeue() bool {
	if t.state.CompareAndSwap(ticketTaken, ticketQueued) {
		return true
	}
	if t.state.CompareAndSwap(ticketLeaving, ticketAbandoned) {
		t.Done <- struct{}{}
	}
	return false
}

// Finish sets the result. If the caller has left, the result is not read.
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
	return h.Result // not returned to the pool, because Ring may still be sending to Done
}

// Wait returns nil when the result is set. If ctx ends first, Wait returns the result of Leave.
func (t *Ticket) Wait(ctx context.Context, grace time.Duration) error {
	select {
	case <-t.Done:
		return nil
	case <-ctx.Done():
		return t.Leave(ctx, grace)
	}
}

// Leave gives up after ctx has ended. It returns nil if the result is set after all.
//
// An operation that no batch has taken leaves no trace. An operation in a batch may or may not be done, so its
// caller receives ErrOutcomeUnknown. Leave waits for the batch for at most grace. Only a caller that waits for
// this ticket alone may use a grace.
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

// Result is a decision, or the reason why there is no decision.
type Result struct {
	Decision model.Decision
	Err      error
}

// Group contains hits on the same counters, in order of arrival.
type Group struct {
	Target       *model.Target
	Hits         []*Hit
	model.Series // the results of the hits
}

// Own returns the key of the customer's own counter.
func (g *Group) Own() model.CounterKey { return g.Target.Counters[0].Key }

// Decide decides the group's hits on rows as Series.Decide does. now is the customer's clock; a later instant of a
// row has precedence. Decide sets the hits' results without notifying callers. The lane or worker calls Finish
// when the charge is durable.
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

// Finish ends all hits with an error, or with the results of Decide.
func (g *Group) Finish(err error) {
	for _, h := range g.Hits {
		if err != nil {
			h.Result = Result{Err: err}
		}
		h.Ring()
	}
}
