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

// Worker performs operations on locked rows: hits that no swap can charge, requests with an id, refunds,
// reservations, imports and atomic batches.
//
// A worker collects operations as a lane collects hits, and performs a batch of operations in one transaction.
// It locks and reads the rows of all their counters, applies one operation after the other with the Go model,
// and then writes the changed rows.
type Worker struct {
	node    *queue.Node
	Session session.Session
	queue.Inbox[*Operation]
	underWay map[receiptKey]int // ids in the queue or in a transaction; guarded by the inbox's mutex

	// SkipUntil is the end, on the stopwatch, of the time in which the worker does not wait for locked rows.
	SkipUntil atomic.Int64

	// The following fields belong to the worker's goroutine.
	batch  []*Operation
	again  []*Operation            // operations to be returned to the queue
	spent  map[int64]time.Duration // the time of each customer's operations in this transaction
	params session.Params
}

// New returns a worker of a node. Run runs the worker.
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

// endGrace is the time for which an operation waits for its transaction after the operation's deadline. A
// transaction that only detects a locked counter takes no longer. If hits wait for a limited time, the grace is at
// most a tenth of that time.
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

// blocked reports whether an abandoned operation waited for another operation with its id, as far as this node
// knows.
func (w *Worker) blocked(o *Operation) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return o.waited.Load() || w.underWay[o.own[0]] > 1
}

// skipTime is the time for which a worker waits for no locked row, after the worker or its lane waited for a
// lock without success.
const skipTime = 5 * time.Second

// SkipLocked begins skipTime. A row may stay locked for long, and hits on other rows must not wait for the
// locked row, too.
func (w *Worker) SkipLocked() { w.SkipUntil.Store(int64(w.node.Stopwatch() + skipTime)) }

// SkipsLocked reports whether the worker does not wait for locked rows now.
func (w *Worker) SkipsLocked() bool {
	return w.node.Stopwatch() < time.Duration(w.SkipUntil.Load())
}

// Enqueue adds an operation after the waiting operations of its sender. Errors: ErrShare, ErrBusy, ErrStopped,
// ErrSlow.
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

// ended records that an operation has left the worker.
func (w *Worker) ended(o *Operation) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.endedLocked(o)
}

// endedLocked does the same as ended. The caller must have locked the inbox's mutex.
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

// sizeOf returns the number of hits of operations.
func sizeOf(batch []*Operation) (n int) {
	for _, o := range batch {
		n += o.Hits()
	}
	return n
}

func (w *Worker) logFault(what string, key model.CounterKey, err error) {
	w.node.Log.Error(what, "customer_id", key.Customer, "meter_id", key.Meter, "error", err)
}

// pending is an operation whose caller waits for the result.
type pending[T any] struct {
	*Operation
	worker *Worker
	out    T
	err    error
}

// submit passes an operation to its worker.
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

// result waits for the operation's result. Errors: those of Decide, ErrUnderWay and the operation's own.
func (p *pending[T]) result(ctx context.Context) (none T, err error) {
	if err = p.worker.Wait(ctx, p.Operation); err != nil {
		return none, err // the operation may still be writing to out
	}
	if p.err != nil {
		return none, p.err
	}
	return p.out, nil
}
