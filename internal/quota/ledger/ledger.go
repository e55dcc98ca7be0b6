package ledger

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

// Ledger does operations on locked rows. These are hits that no swap can charge, requests with
// an id, refunds, reservations, imports and atomic batches.
//
// A ledger gathers operations as a lane gathers hits, and does a batch of them in one
// transaction. It locks the rows of all their counters and reads them. It does one operation
// after the other on the Go model. Then it writes the rows that changed.
type Ledger struct {
	node    *queue.Node
	Session session.Session
	queue.Inbox[*Operation]
	underWay map[receiptKey]int // ids in the queue or in a transaction; under the inbox's mutex

	// Careful is the end, on the stopwatch, of the time in which the ledger waits for no row.
	Careful atomic.Int64

	// Owned by the ledger's goroutine.
	batch  []*Operation
	again  []*Operation            // to be put back
	spent  map[int64]time.Duration // by the operations of a customer, in this transaction
	params session.Params
}

// New is a ledger of a node. Run runs it.
func New(n *queue.Node) *Ledger {
	return &Ledger{
		node: n, Inbox: queue.NewInbox[*Operation](&n.Totals.Over), underWay: make(map[receiptKey]int), spent: make(map[int64]time.Duration),
		Session: session.Session{Options: &n.Options, Statements: Statements()},
	}
}

// endGrace is how much longer than its deadline an operation waits for the transaction that it is
// in. A transaction that only finds out that somebody holds the counter takes no longer.
const endGrace = 500 * time.Millisecond

// Wait waits for an operation that was enqueued.
func (l *Ledger) Wait(ctx context.Context, o *Operation) error {
	err := o.Wait(ctx, endGrace)
	if errors.Is(err, session.ErrBusy) && len(o.own) > 0 && l.blocked(o) {
		err = ErrUnderWay
	}
	return o.outcome(err)
}

// blocked reports whether an operation that was given up waited for another with its id,
// as far as this node can tell.
func (l *Ledger) blocked(o *Operation) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return o.waited.Load() || l.underWay[o.own[0]] > 1
}

// caution is how long a ledger waits for no locked row, after it or its lane waited for one in
// vain.
const caution = 5 * time.Second

// BeCautious begins the time of caution. Somebody may hold a row for long, and hits on other
// rows must not wait for that row, too.
func (l *Ledger) BeCautious() { l.Careful.Store(int64(l.node.Stopwatch() + caution)) }

// Cautious reports whether no row is waited for now.
func (l *Ledger) Cautious() bool {
	return l.node.Stopwatch() < time.Duration(l.Careful.Load())
}

// Enqueue adds an operation after those of its sender that wait. Errors: ErrShare, ErrBusy,
// ErrStopped.
func (l *Ledger) Enqueue(o *Operation) error {
	for _, t := range o.targets {
		t.HandOver(1)
	}
	l.Mu.Lock()
	for _, id := range o.own {
		l.underWay[id]++
	}
	l.Mu.Unlock()
	_, err := l.Inbox.Enqueue(l.node.MaxQueue, o)
	if err != nil {
		l.ended(o)
	}
	return err
}

// ended says that an operation has left the ledger.
func (l *Ledger) ended(o *Operation) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.endedWithin(o)
}

// endedWithin is ended for who has the inbox's mutex.
func (l *Ledger) endedWithin(o *Operation) {
	for _, t := range o.targets {
		t.HandOver(-1)
	}
	for _, id := range o.own {
		if l.underWay[id]--; l.underWay[id] <= 0 {
			delete(l.underWay, id)
		}
	}
}

// Run does transactions until the engine stops and nothing waits any more.
func (l *Ledger) Run(ctx context.Context) {
	defer l.Session.Close()
	_ = l.Session.Ready(ctx) // as a lane does: the first operation finds a session
	l.Inbox.Run(func() { l.Next(ctx) })
}

// take makes the next batch of what waits. It leaves out operations whose callers gave up. A
// batch has at most queue.MaxBatch rows, or one operation that has more by itself. An operation
// that must go alone shares a batch only with its own customer's operations.
func (l *Ledger) take() []*Operation {
	l.batch = l.batch[:0]
	rows := 0
	runs := make(map[runKey]*Operation) // that hits may join: after them there are only runs
	l.Take(func(o *Operation) bool {
		if len(l.batch) > 0 && (rows+o.Rows() > queue.MaxBatch || !o.goesWith(l.batch[0])) {
			return false
		}
		if !o.Take() {
			l.endedWithin(o)
			return true
		}
		if o.hits == nil {
			clear(runs)
		} else if key := (runKey{o.target.Group(), o.from}); runs[key] != nil && runs[key].join(o) {
			l.endedWithin(o)
			return true
		} else {
			runs[key] = o
		}
		l.batch, rows = append(l.batch, o), rows+o.Rows()
		return true
	})
	return l.batch
}

// runKey is what runs have in common that may be joined. One sender's hits keep their order when
// they are put back: so each run has one sender.
type runKey struct {
	model.GroupKey
	from queue.SenderID
}

// finish ends an operation.
func (l *Ledger) finish(o *Operation, err error) {
	l.ended(o)
	o.Finish(err)
}

func (l *Ledger) fail(batch []*Operation, err error) {
	for _, o := range batch {
		l.finish(o, err)
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
func (l *Ledger) Next(ctx context.Context) {
	now, err := l.Session.Begin(ctx)
	batch := l.take()
	if err != nil {
		l.fail(batch, err)
		return
	}
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, session.SendLimit)
	defer cancel()
	l.node.Totals.Batch(sizeOf(batch), 1)
	f := l.Session.Conn.Begin(ctx)
	b, err := l.read(f, batch, now)
	if err != nil {
		f.Abandon()
		l.lost(batch, err, false)
		return
	}
	again := l.apply(b, batch)
	b.write(f, &l.params)
	if err = f.Commit(); err != nil {
		f.Abandon()
		l.lost(batch, err, true)
		return
	}
	l.remember(b, batch)
	for _, o := range batch {
		if !o.again {
			l.finish(o, o.settled)
		}
	}
	l.handBack(again)
	if slices.ContainsFunc(again, l.late) {
		l.PutBehind(l.late)
	}
	if b.cautious && len(again) == len(batch) {
		l.pause(ctx)
	}
}

// pause waits a while, for others hold the rows.
func (l *Ledger) pause(ctx context.Context) {
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
func (l *Ledger) remember(b *books, batch []*Operation) {
	watch := l.node.Stopwatch()
	l.node.Values.Made(b.made, watch)
	for _, a := range b.accounts {
		if a.freed {
			l.node.Memory.Forget(a.key)
		}
		if a.target != nil {
			a.target.Locked(a.read.version, a.read.at, watch)
			a.target.Keep(&model.Known{Row: a.Row, Hour: a.hour, Counted: a.units > 0})
		}
	}
	for _, o := range batch {
		if o.again || o.settled != nil || o.target == nil {
			continue
		}
		rows := make([]model.Row, 0, len(o.target.Counters))
		for i := range o.target.Counters {
			if a := b.accounts[o.target.Counters[i].Key]; a != nil {
				rows = append(rows, a.Row)
			}
		}
		if len(rows) == len(o.target.Counters) {
			l.node.Memory.Remember(o.target, rows, b.now, o.refused)
			l.node.WatchAhead(o.target, o.Hits(), b.now, rows[0].At)
		}
	}
}
