package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
)

// ledger decides what no swap can: what another node writes too, what is on several counters,
// what is done once under an id, what gives back, what holds, what belongs together. It
// gathers operations as a lane gathers hits, and does a batch of them in one transaction:
// locks the rows of all their counters and reads them; does one operation after the other on
// the Go model; writes what came of it. So an operation with an id finds the receipt of any
// other with it: whoever did it held the same counter.
type ledger struct {
	engine  *Engine
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

func newLedger(e *Engine) *ledger {
	return &ledger{
		engine: e, inbox: newInbox[*operation](), underWay: make(map[receiptKey]int),
		session: session{options: &e.options, statements: ledgerStatements()},
	}
}

// ledger is the one that does a customer's operations.
func (e *Engine) ledger(customer int64) *ledger {
	return e.ledgers[int(Shard(customer))%len(e.ledgers)]
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
func (l *ledger) beCautious() { l.careful.Store(int64(l.engine.options.Stopwatch() + caution)) }

func (l *ledger) cautious() bool {
	return l.engine.options.Stopwatch() < time.Duration(l.careful.Load())
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
	case l.waiting+o.size() > l.engine.options.MaxQueue:
		return ErrBusy
	}
	for _, id := range o.own {
		l.underWay[id]++
	}
	for _, t := range o.targets {
		t.known.handOver(1)
	}
	l.waiting += o.size()
	l.queue = append(l.queue, o)
	l.signal()
	return nil
}

// ended says that an operation has left the ledger.
func (l *ledger) ended(o *operation) {
	for _, t := range o.targets {
		t.known.handOver(-1)
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
	runs := make(map[groupKey]*operation) // that hits may join: nothing else of their customer is behind them
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
	l.engine.stats.batch(len(batch), 1)
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

// applyLimit bounds how long rows are held while operations are done on them; those that
// are left have the next transaction.
const applyLimit = 300 * time.Millisecond

// apply does the operations one after the other, and returns those that need what was not
// read. spoiled is one that the model could not do, and that has ended: of what it left in the
// books nothing may be written.
func (l *ledger) apply(b *books, batch []*operation) (again []*operation, spoiled *operation) {
	began := l.engine.options.Stopwatch()
	for i, o := range batch {
		if i > 0 && l.engine.options.Stopwatch()-began > applyLimit {
			for _, late := range batch[i:] {
				late.again = true
			}
			return append(again, batch[i:]...), nil
		}
		b.wanted, o.again = b.wanted[:0], false
		if o.settled = l.do(b, o); errors.Is(o.settled, errSpoiled) {
			l.finish(o, fmt.Errorf("%w: %w", ErrInternal, o.settled))
			return nil, o
		}
		switch {
		case errors.Is(o.settled, errHeldRow): // the caller says how long to wait
			o.waited.Store(true)
			o.tries--
		case errors.Is(o.settled, errMissingRow):
			o.insert = true
		case errors.Is(o.settled, errMissingLock):
		case errors.Is(o.settled, errMissingHour):
			o.hours = b.missing
		default:
			continue
		}
		o.tries++
		o.lock(b.wanted...)
		o.again = true
		again = append(again, o)
	}
	return again, nil
}

// errSpoiled: a row holds what the model cannot read. Somebody has written it by hand.
var errSpoiled = errors.New("a counter's row cannot be read")

// do does one operation. The fault of one row must not end the process, nor fail others.
func (l *ledger) do(b *books, o *operation) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: %v", errSpoiled, fault)
			l.logFault("an operation cannot be done on what its counters hold", o, err)
		}
	}()
	return o.do(b)
}

func (l *ledger) logFault(what string, o *operation, err error) {
	l.engine.options.Log.Error(what, "customer_id", o.keys[0].Customer, "meter_id", o.keys[0].Meter, "error", err)
}

// remember keeps the rows that were written, and tells the memory of refusals what the
// counters are now, before a caller hears of it.
func (l *ledger) remember(b *books, batch []*operation) {
	watch := l.engine.options.Stopwatch()
	for _, a := range b.accounts {
		if a.freed {
			l.engine.memory.forget(a.key)
		}
		if a.target != nil {
			a.target.known.locked(a.read.version, a.read.at, watch)
			a.target.keep(&knownRow{row: a.row, hour: a.hour, counted: a.units > 0})
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
			l.engine.memory.remember(o.target, rows, b.now, o.refused)
			l.engine.watchAhead(o.target, o.size(), b.now, rows[0].at)
		}
	}
}

// lost ends a transaction that failed. One that did not come to its commit was rolled back,
// and so was what the server itself says so of. What has an id may be sent again in any
// case: if it was done, it is found done.
func (l *ledger) lost(batch []*operation, err error, committing bool) {
	e := l.engine
	rolled := rolledBack(err)
	if !rolled {
		l.session.drop()
	}
	switch {
	case errors.Is(err, errMisread):
		e.options.Log.Error("an operation's transaction was given up", "error", err)
		l.fail(batch, fmt.Errorf("%w: %w", ErrInternal, err))
	case rolled && (postgres.Retryable(err) || duplicate(err)):
		if !duplicate(err) {
			l.beCautious()
		}
		e.stats.retried.Add(int64(len(batch)))
		for _, o := range batch {
			o.tries++
		}
		l.handBack(batch)
	case rolled && hopeless(err):
		l.fail(batch, l.session.refuse(err))
	case rolled && batch[0].alone:
		l.logFault("the database refused an operation's statement", batch[0], err)
		l.fail(batch, fmt.Errorf("%w: %w", ErrInternal, err))
	case rolled: // one customer's fault must not fail the others': each goes alone
		for _, o := range batch {
			o.alone = true
		}
		l.handBack(batch)
	default:
		l.cutOff(batch, err, committing)
	}
}

// duplicate reports whether a receipt was there already when it was to be written.
func duplicate(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "23505"
}

// idled reports whether the server ended a transaction since it had waited for its next
// statement for too long: nothing of it was done.
func idled(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "25P03"
}

// cutOff ends or repeats what was in a transaction whose connection broke.
func (l *ledger) cutOff(batch []*operation, err error, committing bool) {
	var again []*operation
	for _, o := range batch {
		if committing {
			o.unknown.Store(true)
			l.engine.stats.unknown.Add(1)
		}
		switch {
		case o.cuts < maxCuts && (!committing || o.repeatable):
			o.cuts++
			again = append(again, o)
		case committing:
			l.finish(o, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
		default:
			l.finish(o, fmt.Errorf("%w: %w", ErrUnavailable, err))
		}
	}
	l.handBack(again)
}

// maxCuts bounds how often an operation is sent again because its connection broke.
const maxCuts = 5

// maxTries bounds how often an operation is done anew. More means a fault, or a row that is
// held for very long.
const maxTries = 50

// handBack puts operations into the next transaction, in front of those that came later,
// but for those whose callers left meanwhile.
func (l *ledger) handBack(batch []*operation) {
	for _, o := range batch {
		switch {
		case o.tries > maxTries && o.waited.Load() && len(o.own) > 0:
			l.finish(o, ErrUnderWay)
		case o.tries > maxTries:
			l.finish(o, fmt.Errorf("%w: tried %d times without an outcome", ErrBusy, o.tries))
		case o.requeue():
			l.again = append(l.again, o)
		default:
			l.ended(o)
		}
	}
}
