package locked

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Worker does operations on locked rows. These are hits that no swap can charge, requests with
// an id, refunds, reservations, imports and atomic batches.
//
// A worker gathers operations as a lane gathers hits, and does a batch of them in one
// transaction. It locks the rows of all their counters and reads them. It does one operation
// after the other on the Go model. Then it writes the rows that changed.
type Worker struct {
	node    *queue.Node
	Session session.Session
	queue.Inbox[*Operation]
	underWay map[receiptKey]int // ids in the queue or in a transaction; under the inbox's mutex

	// SkipUntil is the end, on the stopwatch, of the time in which the worker waits for no row.
	SkipUntil atomic.Int64

	// Owned by the worker's goroutine.
	batch  []*Operation
	again  []*Operation            // to be put back
	spent  map[int64]time.Duration // by the operations of a customer, in this transaction
	params session.Params
}

// New is a worker of a node. Run runs it.
func New(n *queue.Node) *Worker {
	statements := Statements()
	if n.AlsoAdjusted != "" {
		statements[alsoAdjusted] = n.AlsoAdjusted
	}
	return &Worker{
		node: n, Inbox: queue.NewInbox[*Operation](&n.Totals.Over), underWay: make(map[receiptKey]int), spent: make(map[int64]time.Duration),
		Session: session.Session{Options: &n.Options, Statements: statements},
	}
}

// endGrace is how much longer than its deadline an operation waits for the transaction that it is
// in. A transaction that only finds out that somebody holds the counter takes no longer. Where hits
// wait within a time, it is a tenth of that.
const endGrace = 500 * time.Millisecond

// Wait waits for an operation that was enqueued.
func (w *Worker) Wait(ctx context.Context, o *Operation) error {
	grace := w.node.Circuit.Grace(endGrace)
	if o.hasty {
		grace = 0
	}
	err := o.Wait(ctx, grace)
	if errors.Is(err, session.ErrBusy) && len(o.own) > 0 && w.blocked(o) {
		err = ErrUnderWay
	}
	return o.outcome(err)
}

// blocked reports whether an operation that was given up waited for another with its id,
// as far as this node can tell.
func (w *Worker) blocked(o *Operation) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return o.waited.Load() || w.underWay[o.own[0]] > 1
}

// skipTime is how long a worker waits for no locked row, after it or its lane waited for one in
// vain.
const skipTime = 5 * time.Second

// SkipLocked begins skipTime. Somebody may hold a row for long, and hits on other
// rows must not wait for that row, too.
func (w *Worker) SkipLocked() { w.SkipUntil.Store(int64(w.node.Stopwatch() + skipTime)) }

// SkipsLocked reports whether no row is waited for now.
func (w *Worker) SkipsLocked() bool {
	return w.node.Stopwatch() < time.Duration(w.SkipUntil.Load())
}

// Enqueue adds an operation after those of its sender that wait. Errors: ErrShare, ErrBusy,
// ErrStopped, ErrSlow.
func (w *Worker) Enqueue(o *Operation) error {
	if err := w.node.Circuit.Err(); err != nil {
		return err
	}
	for _, t := range o.targets {
		t.HandOver(1)
	}
	w.Mu.Lock()
	for _, id := range o.own {
		w.underWay[id]++
	}
	w.Mu.Unlock()
	_, err := w.Inbox.Enqueue(w.node.MaxQueue, o)
	if err != nil {
		w.ended(o)
	}
	return err
}

// ended says that an operation has left the worker.
func (w *Worker) ended(o *Operation) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.endedLocked(o)
}

// endedLocked is ended for who has the inbox's mutex.
func (w *Worker) endedLocked(o *Operation) {
	for _, t := range o.targets {
		t.HandOver(-1)
	}
	for _, id := range o.own {
		if w.underWay[id]--; w.underWay[id] <= 0 {
			delete(w.underWay, id)
		}
	}
}

// finish ends an operation.
func (w *Worker) finish(o *Operation, err error) {
	w.ended(o)
	o.Finish(err)
}

func (w *Worker) fail(batch []*Operation, err error) {
	for _, o := range batch {
		w.finish(o, err)
	}
}

// sizeOf is how many hits operations have.
func sizeOf(batch []*Operation) (n int) {
	for _, o := range batch {
		n += o.Hits()
	}
	return n
}

func (w *Worker) logFault(what string, key model.CounterKey, err error) {
	w.node.Log.Error(what, "customer_id", key.Customer, "meter_id", key.Meter, "error", err)
}

// pending is an operation whose caller waits for its result.
type pending[T any] struct {
	*Operation
	worker *Worker
	out    T
	err    error
}

// submit hands an operation to its worker.
func submit[T any](w *Worker, o *Operation, do func(*transaction) (T, error)) *pending[T] {
	p := &pending[T]{Operation: o, worker: w}
	o.do = func(tx *transaction) (err error) {
		p.out, err = do(tx)
		return err
	}
	o.failed = func(err error) { p.err = err }
	if err := w.Enqueue(o); err != nil {
		o.Finish(err)
	}
	return p
}

// result waits for it. Errors: those of Decide, ErrUnderWay and the operation's own.
func (p *pending[T]) result(ctx context.Context) (none T, err error) {
	if err = p.worker.Wait(ctx, p.Operation); err != nil {
		return none, err // the operation may still be writing to out
	}
	if p.err != nil {
		return none, p.err
	}
	return p.out, nil
}
