package quota

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// ledger decides what no swap can: what another node writes too, what is on several counters,
// what is done once under an id, what gives back, what holds, what belongs together. It
// gathers operations as a lane gathers hits, and does a batch of them in one transaction:
// locks the rows of all their counters and reads them; does one operation after the other on
// the Go model; writes what came of it. So an operation with an id finds the receipt of any
// other with it: whoever did it held the same counter.
type ledger struct {
	node    *node
	session session
	inbox[*operation]
	waiting  int                // hits in the queue, an operation being one; under the inbox's mutex
	underWay map[receiptKey]int // ids in the queue or in a transaction; likewise

	// careful is until when, on the stopwatch, no row is waited for.
	careful atomic.Int64

	// Owned by the ledger's goroutine.
	again  []*operation // handed back: first in the next transaction
	batch  []*operation
	params params
}

func newLedger(n *node) *ledger {
	return &ledger{
		node: n, inbox: newInbox[*operation](), underWay: make(map[receiptKey]int),
		session: session{options: &n.sessionOptions, statements: ledgerStatements()},
	}
}

// endGrace is how much longer than its time an operation waits for the transaction that it
// is in: one that only finds out that somebody holds its counter takes no longer.
const endGrace = 500 * time.Millisecond

// wait waits for an operation that was enqueued.
func (l *ledger) wait(ctx context.Context, o *operation) error {
	err := o.wait(ctx, endGrace)
	if errors.Is(err, ErrBusy) && len(o.own) > 0 && l.blocked(o) {
		err = ErrUnderWay
	}
	return o.outcome(err)
}

// blocked reports whether an operation that was given up waited for another with its id,
// as far as this node can tell.
func (l *ledger) blocked(o *operation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return o.waited.Load() || l.underWay[o.own[0]] > 1
}

// caution is how long a ledger waits for no row after it, or its lane, waited for one in vain.
const caution = 5 * time.Second

// beCautious begins that time: somebody may be holding a row for long, and the others must
// not wait for it too.
func (l *ledger) beCautious() { l.careful.Store(int64(l.node.Stopwatch() + caution)) }

func (l *ledger) cautious() bool {
	return l.node.Stopwatch() < time.Duration(l.careful.Load())
}

// queued is how many hits and other operations wait.
func (l *ledger) queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// enqueue adds an operation behind those that wait. Errors: ErrBusy, ErrStopped.
func (l *ledger) enqueue(o *operation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		return ErrStopped
	case l.waiting+o.size() > l.node.maxQueue:
		return ErrBusy
	}
	for _, id := range o.own {
		l.underWay[id]++
	}
	for _, t := range o.targets {
		t.HandOver(1)
	}
	l.waiting += o.size()
	l.queue = append(l.queue, o)
	l.signal()
	return nil
}

// ended says that an operation has left the ledger.
func (l *ledger) ended(o *operation) {
	for _, t := range o.targets {
		t.HandOver(-1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range o.own {
		if l.underWay[id]--; l.underWay[id] <= 0 {
			delete(l.underWay, id)
		}
	}
}

// run does transactions until the engine stops and nothing waits any more.
func (l *ledger) run(ctx context.Context) {
	defer l.session.close()
	_ = l.session.ready(ctx) // see lane.run
	l.inbox.run(func() bool { return len(l.again) > 0 }, func() { l.next(ctx) })
}

// take makes the next batch, of maxBatch rows but for an operation that has more by itself:
// what was handed back, then the queue, but for those whose callers gave up.
func (l *ledger) take() []*operation {
	l.batch = l.batch[:0]
	if l.again = l.takeSome(l.again); len(l.again) > 0 {
		return l.batch
	}
	l.mu.Lock()
	waiting := l.queue
	l.queue, l.waiting = nil, 0
	l.mu.Unlock()
	if rest := l.takeSome(waiting); len(rest) > 0 {
		l.mu.Lock()
		for _, o := range rest {
			l.waiting += o.size()
		}
		l.queue = append(rest, l.queue...)
		l.mu.Unlock()
	}
	return l.batch
}

// takeSome takes operations into the batch until it is full, and returns the others. One that
// must go alone goes with those of its customer.
func (l *ledger) takeSome(list []*operation) (rest []*operation) {
	rows := 0
	for _, o := range l.batch {
		rows += o.rows()
	}
	runs := make(map[groupKey]*operation) // that hits may join: behind them there are only runs
	for i, o := range list {
		if len(l.batch) > 0 && (rows+o.rows() > maxBatch || !o.goesWith(l.batch[0])) {
			return slices.Clone(list[i:])
		}
		if !o.take() {
			l.ended(o)
			continue
		}
		if o.hits == nil {
			clear(runs)
		} else if key := o.target.groupKey(); runs[key] != nil && runs[key].join(o) {
			l.ended(o)
			continue
		} else {
			runs[key] = o
		}
		l.batch, rows = append(l.batch, o), rows+o.rows()
	}
	return nil
}

// finish ends an operation.
func (l *ledger) finish(o *operation, err error) {
	l.ended(o)
	o.finish(err)
}

func (l *ledger) fail(batch []*operation, err error) {
	for _, o := range batch {
		l.finish(o, err)
	}
}

// sizeOf is how many hits operations have.
func sizeOf(batch []*operation) (n int) {
	for _, o := range batch {
		n += o.size()
	}
	return n
}

// next does one transaction.
func (l *ledger) next(ctx context.Context) {
	now, err := l.session.begin(ctx)
	batch := l.take()
	if err != nil {
		l.fail(batch, err)
		return
	}
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	l.node.totals.batch(sizeOf(batch), 1)
	f := l.session.store.begin(ctx)
	b, err := l.read(f, batch, now)
	if err != nil {
		f.abandon()
		l.lost(batch, err, false)
		return
	}
	again, spoiled := l.apply(b, batch)
	if spoiled != nil {
		f.abandon()
		l.handBack(slices.DeleteFunc(slices.Clone(batch), func(o *operation) bool { return o == spoiled }))
		return
	}
	b.write(f, &l.params)
	if err = f.commit(); err != nil {
		f.abandon()
		l.lost(batch, err, !idled(err))
		return
	}
	l.remember(b, batch)
	for _, o := range batch {
		if !o.again {
			l.finish(o, o.settled)
		}
	}
	l.handBack(again)
	if b.cautious && len(again) == len(batch) {
		l.pause(ctx)
	}
}

// pause waits a while, for others hold the rows.
func (l *ledger) pause(ctx context.Context) {
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
func (l *ledger) remember(b *books, batch []*operation) {
	watch := l.node.Stopwatch()
	for _, a := range b.accounts {
		if a.freed {
			l.node.memory.forget(a.key)
		}
		if a.target != nil {
			a.target.Locked(a.read.version, a.read.at, watch)
			a.target.Keep(&knownRow{row: a.row, hour: a.hour, counted: a.units > 0})
		}
	}
	for _, o := range batch {
		if o.again || o.settled != nil || o.target == nil {
			continue
		}
		rows := make([]row, 0, len(o.target.Counters))
		for i := range o.target.Counters {
			if a := b.accounts[o.target.Counters[i].Key]; a != nil {
				rows = append(rows, a.row)
			}
		}
		if len(rows) == len(o.target.Counters) {
			l.node.memory.remember(o.target, rows, b.now, o.refused)
			l.node.watchAhead(o.target, o.size(), b.now, rows[0].at)
		}
	}
}
