package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
)

// ledger does what a lane's statement cannot: what is done once under an id, what gives
// back, what holds, what belongs together. It gathers operations as a lane gathers hits,
// and does a batch of them in one transaction: locks the rows of all their counters, in
// the order in which lanes do, and reads them; does one operation after the other on the
// Go model; writes what came of it. So an operation with an id finds the receipt of any
// other with it: whoever did it held the same counter.
type ledger struct {
	engine  *Engine
	session session
	inbox[*operation]
	underWay map[receiptKey]int // ids in the queue or in a transaction; under the inbox's mutex

	// Owned by the ledger's goroutine.
	again    []*operation // handed back: first in the next transaction
	batch    []*operation
	weight   int           // hits in it
	cautious time.Duration // until then, on the stopwatch, no row is waited for
	params   params
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

// enqueue adds an operation behind those that wait, as the inbox does.
func (l *ledger) enqueue(o *operation) error {
	l.begun(o)
	_, err := l.inbox.enqueue(l.engine.options.MaxQueue, o)
	if err != nil {
		l.ended(o)
	}
	return err
}

// begun and ended count the operations under way by their ids.
func (l *ledger) begun(o *operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range o.own {
		l.underWay[id]++
	}
}

func (l *ledger) ended(o *operation) {
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

// take makes the next batch, of maxBatch hits but for an operation that has more by
// itself: what was handed back, then the queue, but for those whose callers gave up.
func (l *ledger) take() []*operation {
	l.batch, l.weight = l.batch[:0], 0
	l.again = l.takeSome(l.again)
	if len(l.again) == 0 {
		l.mu.Lock()
		waiting := l.queue
		l.queue = nil
		l.mu.Unlock()
		if rest := l.takeSome(waiting); len(rest) > 0 {
			l.mu.Lock()
			l.queue = append(rest, l.queue...)
			l.mu.Unlock()
		}
	}
	return l.batch
}

// takeSome takes operations into the batch until it is full, and returns the others. One
// that must go alone does.
func (l *ledger) takeSome(list []*operation) (rest []*operation) {
	for i, o := range list {
		if len(l.batch) > 0 && (o.alone || l.batch[0].alone || l.weight+o.weight > maxBatch) {
			return slices.Clone(list[i:])
		}
		if o.take() {
			l.batch, l.weight = append(l.batch, o), l.weight+o.weight
		} else {
			l.ended(o)
		}
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
	again := l.apply(b, batch)
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
		time.Sleep(cautiousPause)
	}
}

// cautiousPause follows a transaction that could do nothing, since others hold the rows.
const cautiousPause = 5 * time.Millisecond

// applyLimit bounds how long rows are held while operations are done on them; those that
// are left have the next transaction.
const applyLimit = 300 * time.Millisecond

// apply does the operations one after the other, and returns those that need what was not
// read.
func (l *ledger) apply(b *books, batch []*operation) (again []*operation) {
	began := l.engine.options.Stopwatch()
	for i, o := range batch {
		if i > 0 && l.engine.options.Stopwatch()-began > applyLimit {
			for _, late := range batch[i:] {
				late.again = true
			}
			return append(again, batch[i:]...)
		}
		b.wanted, o.again = b.wanted[:0], false
		switch o.settled = o.do(b); {
		case errors.Is(o.settled, errMissingRow) && b.cautious && o.insert:
			// It is there, and somebody holds it: the caller says how long to wait.
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
	return again
}

// remember tells the memory of refusals what the counters are now, before a caller hears
// of it.
func (l *ledger) remember(b *books, batch []*operation) {
	for _, a := range b.accounts {
		if a.freed {
			l.engine.memory.forget(a.key)
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
			// Somebody may be holding a row for long: the others must not wait for it too.
			l.cautious = e.options.Stopwatch() + caution
		}
		e.stats.retried.Add(int64(len(batch)))
		for _, o := range batch {
			o.tries++
		}
		l.handBack(batch)
	case rolled && postgres.Outage(err):
		l.fail(batch, fmt.Errorf("%w: %w", ErrUnavailable, err))
	case rolled && len(batch) == 1:
		o := batch[0]
		e.options.Log.Error("the database refused an operation's statement", "customer_id", o.keys[0].Customer,
			"meter_id", o.keys[0].Meter, "error", err)
		l.finish(o, fmt.Errorf("%w: %w", ErrInternal, err))
	case rolled: // one operation's fault must not fail the others': each goes alone
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
