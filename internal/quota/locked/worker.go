package locked

import (
	"context"
	"errors"
	"slices"
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

	// Careful is the end, on the stopwatch, of the time in which the worker waits for no row.
	Careful atomic.Int64

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
// in. A transaction that only finds out that somebody holds the counter takes no longer.
const endGrace = 500 * time.Millisecond

// Wait waits for an operation that was enqueued.
func (w *Worker) Wait(ctx context.Context, o *Operation) error {
	err := o.Wait(ctx, endGrace)
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

// caution is how long a worker waits for no locked row, after it or its lane waited for one in
// vain.
const caution = 5 * time.Second

// BeCautious begins the time of caution. Somebody may hold a row for long, and hits on other
// rows must not wait for that row, too.
func (w *Worker) BeCautious() { w.Careful.Store(int64(w.node.Stopwatch() + caution)) }

// Cautious reports whether no row is waited for now.
func (w *Worker) Cautious() bool {
	return w.node.Stopwatch() < time.Duration(w.Careful.Load())
}

// Enqueue adds an operation after those of its sender that wait. Errors: ErrShare, ErrBusy,
// ErrStopped.
func (w *Worker) Enqueue(o *Operation) error {
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
	w.endedWithin(o)
}

// endedWithin is ended for who has the inbox's mutex.
func (w *Worker) endedWithin(o *Operation) {
	for _, t := range o.targets {
		t.HandOver(-1)
	}
	for _, id := range o.own {
		if w.underWay[id]--; w.underWay[id] <= 0 {
			delete(w.underWay, id)
		}
	}
}

// Run does transactions until the engine stops and nothing waits any more.
func (w *Worker) Run(ctx context.Context) {
	defer w.Session.Close()
	_ = w.Session.Ready(ctx) // as a lane does: the first operation finds a session
	w.Inbox.Run(func() { w.Next(ctx) })
}

// take makes the next batch of what waits. It leaves out operations whose callers gave up. A
// batch has at most queue.MaxBatch rows, or one operation that has more by itself. An operation
// that must go alone shares a batch only with its own customer's operations.
func (w *Worker) take() []*Operation {
	w.batch = w.batch[:0]
	rows := 0
	runs := make(map[runKey]*Operation) // that hits may join: after them there are only runs
	w.Take(func(o *Operation) bool {
		if len(w.batch) > 0 && (rows+o.Rows() > queue.MaxBatch || !o.goesWith(w.batch[0])) {
			return false
		}
		if !o.Take() {
			w.endedWithin(o)
			return true
		}
		if o.hits == nil {
			clear(runs)
		} else if key := (runKey{o.target.Group(), o.from}); runs[key] != nil && runs[key].join(o) {
			w.endedWithin(o)
			return true
		} else {
			runs[key] = o
		}
		w.batch, rows = append(w.batch, o), rows+o.Rows()
		return true
	})
	return w.batch
}

// runKey is what runs have in common that may be joined. One sender's hits keep their order when
// they are put back: so each run has one sender.
type runKey struct {
	model.GroupKey
	from queue.SenderID
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

// Next does one transaction.
func (w *Worker) Next(ctx context.Context) {
	now, err := w.Session.Begin(ctx)
	batch := w.take()
	if err != nil {
		w.fail(batch, err)
		return
	}
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, session.SendLimit)
	defer cancel()
	w.node.Totals.Batch(sizeOf(batch), 1)
	pipe := w.Session.Conn.Begin(ctx)
	tx, err := w.read(pipe, batch, now)
	if err != nil {
		pipe.Abandon()
		w.lost(batch, err, false)
		return
	}
	again := w.apply(tx, batch)
	tx.write(pipe, &w.params)
	if err = pipe.Commit(); err != nil {
		pipe.Abandon()
		w.lost(batch, err, true)
		return
	}
	w.remember(tx, batch)
	for _, o := range batch {
		if !o.again {
			w.finish(o, o.settled)
		}
	}
	w.handBack(again)
	if slices.ContainsFunc(again, w.late) {
		w.PutLast(w.late)
	}
	if tx.cautious && len(again) == len(batch) {
		w.pause(ctx)
	}
}

// pause waits a while, for others hold the rows.
func (w *Worker) pause(ctx context.Context) {
	enough := time.NewTimer(cautiousPause)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-ctx.Done():
	}
}

// cautiousPause follows a transaction that could do nothing, since others hold the rows.
const cautiousPause = 5 * time.Millisecond

// remember keeps the rows that were written, and tells the memory of refusals what the
// counters are now, before a caller hears of it.
func (w *Worker) remember(tx *transaction, batch []*Operation) {
	watch := w.node.Stopwatch()
	w.node.Values.Made(tx.made, watch)
	for _, c := range tx.counters {
		if c.freed {
			w.node.Memory.Forget(c.key)
		}
		if c.target != nil {
			c.target.Locked(c.read.version, c.read.at, watch)
			c.target.Keep(&model.Known{Row: c.Row, Hour: c.hour, Counted: c.units > 0})
		}
	}
	for _, o := range batch {
		if o.again || o.settled != nil || o.target == nil {
			continue
		}
		rows := make([]model.Row, 0, len(o.target.Counters))
		for i := range o.target.Counters {
			if c := tx.counters[o.target.Counters[i].Key]; c != nil {
				rows = append(rows, c.Row)
			}
		}
		if len(rows) == len(o.target.Counters) {
			w.node.Memory.Remember(o.target, rows, tx.now, o.refused)
			w.node.WatchAhead(o.target, o.Hits(), tx.now, rows[0].At)
		}
	}
}
