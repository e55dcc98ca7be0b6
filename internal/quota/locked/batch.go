package locked

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Run does transactions until the engine stops and nothing waits any more.
func (w *Worker) Run(ctx context.Context) {
	defer w.Session.Close()
	_ = w.Session.Ready(ctx) // as a lane does: the first operation finds a session
	w.Session.End()
	w.Inbox.Run(func() { w.Next(ctx) })
}

// Next does one transaction.
func (w *Worker) Next(ctx context.Context) {
	defer w.Session.End()
	now, err := w.Session.Begin(ctx)
	batch := w.take()
	if err != nil {
		w.fail(batch, err)
		return
	}
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.node.SendLimit())
	defer cancel()
	w.node.Totals.Batch(sizeOf(batch), 1)
	w.node.Metrics.Locked.Batch(sizeOf(batch))
	began := w.node.Stopwatch()
	pipe := w.Session.Conn.Begin(ctx)
	tx, err := w.read(pipe, batch, now)
	w.node.Metrics.Locked.Read(w.node.Stopwatch() - began)
	if err != nil {
		pipe.Abandon()
		w.transactionFailed(batch, err, false)
		return
	}
	again := w.apply(tx, batch)
	tx.write(pipe, &w.params)
	began = w.node.Stopwatch()
	err = pipe.Commit()
	w.node.Metrics.Locked.Write(w.node.Stopwatch() - began)
	if err != nil {
		pipe.Abandon()
		w.transactionFailed(batch, err, true)
		return
	}
	if len(tx.repaired) > 0 {
		w.node.WentBack(tx.repaired[0], len(tx.repaired))
	}
	w.remember(tx, batch)
	for _, o := range batch {
		if !o.again {
			w.finish(o, o.doErr)
		}
	}
	w.handBack(again)
	if slices.ContainsFunc(again, w.late) {
		w.PutLast(w.late)
	}
	if tx.skipsLocked && len(again) == len(batch) {
		w.pause(ctx)
	}
}

// take makes the next batch of what waits. It leaves out operations whose callers gave up. A
// batch has at most queue.MaxBatch rows, or one operation that has more by itself. An operation
// that must go alone shares a batch only with its own customer's operations.
func (w *Worker) take() []*Operation {
	w.batch = w.batch[:0]
	rows := 0
	groups := make(map[senderGroup]*Operation) // that hits may join: after them there are only groups
	w.Take(func(o *Operation) bool {
		if len(w.batch) > 0 && (rows+o.Rows() > queue.MaxBatch || !o.goesWith(w.batch[0])) {
			return false
		}
		if !o.Take() {
			w.endedLocked(o)
			return true
		}
		if o.hits == nil {
			clear(groups)
		} else if key := (senderGroup{o.target.Group(), o.from}); groups[key] != nil && groups[key].join(o) {
			w.endedLocked(o)
			return true
		} else {
			groups[key] = o
		}
		w.batch, rows = append(w.batch, o), rows+o.Rows()
		return true
	})
	return w.batch
}

// senderGroup is what groups have in common that may be joined. One sender's hits keep their order when
// they are put back: so each group has one sender.
type senderGroup struct {
	model.GroupKey
	from queue.SenderID
}

// pause waits a while, for others hold the rows.
func (w *Worker) pause(ctx context.Context) {
	enough := time.NewTimer(skippedPause)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-ctx.Done():
	}
}

// skippedPause follows a transaction that could do nothing, since others hold the rows.
const skippedPause = 5 * time.Millisecond

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
		if o.again || o.doErr != nil || o.target == nil {
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
			w.node.WatchAhead(o.target, o.Hits(), rows[0].At-tx.now)
		}
	}
}

// applyLimit bounds how long rows are held while operations are done on them; those that
// are left have the next transaction.
const applyLimit = 300 * time.Millisecond

// customerLimit is from when on a transaction does no more operations of a customer. Views of
// thousands of holds take milliseconds each, and others wait for the same commit.
const customerLimit = 20 * time.Millisecond

// late reports whether a customer of an operation has had its time in this transaction.
func (w *Worker) late(o *Operation) bool {
	return slices.ContainsFunc(o.keys, func(k model.CounterKey) bool { return w.spent[k.Customer] >= customerLimit })
}

// apply does the operations one after the other. again are operations for the next transaction:
// they need rows that this one has not locked or read, or the time ran out.
//
// The operations of a customer whose time ran out keep their order. So one that is put off puts
// off all later ones of its customers.
func (w *Worker) apply(tx *transaction, batch []*Operation) (again []*Operation) {
	began := w.node.Stopwatch()
	clear(w.spent)
	for i, o := range batch {
		start := w.node.Stopwatch()
		if i > 0 && start-began > applyLimit {
			for _, late := range batch[i:] {
				late.again = true
			}
			return append(again, batch[i:]...)
		}
		if o.again = w.late(o); o.again {
			for _, k := range o.keys {
				w.spent[k.Customer] = customerLimit
			}
			again = append(again, o)
			continue
		}
		tx.wanted, tx.missing, tx.judged = tx.wanted[:0], nil, tx.judged[:0]
		if o.doErr = o.do(tx); o.doErr == nil {
			tx.raise()
		}
		if customer, single := o.customer(); single {
			w.spent[customer] += w.node.Stopwatch() - start
		}
		switch {
		case errors.Is(o.doErr, errHeldRow): // the caller says how long to wait
			o.waited.Store(true)
			o.tries--
		case errors.Is(o.doErr, errMissingRow):
			o.insert = true
		case errors.Is(o.doErr, errMissingLock):
		case errors.Is(o.doErr, errMissingHour):
			o.hours = append(o.hours, tx.missing...)
		case errors.Is(o.doErr, errMissingNumber):
			o.numbered = true
		default:
			continue
		}
		o.tries++
		o.lock(tx.wanted...)
		o.again = true
		again = append(again, o)
	}
	return again
}

// transactionFailed ends a transaction that failed. A transaction was rolled back if it did not come to its
// commit, or if postgres.NotCommitted says so. Operations with ids may be sent again in any case:
// if they were done, they find their receipts.
func (w *Worker) transactionFailed(batch []*Operation, err error, committing bool) {
	n := w.node
	unknown := committing && !postgres.NotCommitted(err)
	rolled := !unknown && session.RolledBack(err)
	w.Session.Suspect(err)
	if !rolled {
		w.Session.Drop()
	}
	switch {
	case session.Misread(err):
		n.Log.Error("an operation's transaction was given up", "error", err)
		w.fail(batch, fmt.Errorf("%w: %w", session.ErrInternal, err))
	case rolled && (postgres.Retryable(err) || duplicate(err)):
		if !duplicate(err) {
			w.SkipLocked()
		}
		if tooLate(err) {
			n.Troubles.Report(fmt.Errorf("%w: %w", session.ErrBusy, err), n.Stopwatch())
		}
		n.Totals.Retried.Add(int64(sizeOf(batch)))
		for _, o := range batch {
			o.tries++
		}
		w.handBack(batch)
	case rolled && postgres.Archived(err):
		w.archived(batch, err)
	case rolled && session.Hopeless(err):
		w.fail(batch, w.Session.Refuse(err))
	case rolled && batch[0].alone:
		w.logFault("the database refused an operation's statement", batch[0].keys[0], err)
		w.fail(batch, fmt.Errorf("%w: %w", session.ErrInternal, err))
	case rolled: // one customer's fault must not fail the others': each goes alone
		for _, o := range batch {
			o.alone = true
		}
		w.handBack(batch)
	default:
		w.cutOff(batch, err, unknown)
	}
}

// archived ends a transaction of which the database refused an operation on archived usage. Each one
// goes by itself then: the hits that came with it must not fail.
func (w *Worker) archived(batch []*Operation, err error) {
	if len(batch) == 1 {
		w.fail(batch, fmt.Errorf("%w: %w", ErrArchived, err))
		return
	}
	for _, o := range batch {
		o.single = true
	}
	w.handBack(batch)
}

// duplicate reports whether a receipt was there already when it was to be written.
func duplicate(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "23505"
}

// tooLate reports whether a statement took too long, or waited too long for a lock. A worker waits for
// no row that is held for long, so somebody holds the table, or the database is slow: all hits wait.
func tooLate(err error) bool {
	state := session.StateOf(err)
	return state == "55P03" || state == "57014"
}

// cutOff ends or repeats what was in a transaction whose connection broke. unknown: it may have
// been committed.
func (w *Worker) cutOff(batch []*Operation, err error, unknown bool) {
	var again []*Operation
	for _, o := range batch {
		if unknown {
			o.unknown.Store(true)
			w.node.Totals.Unknown.Add(int64(o.Hits()))
		}
		switch {
		case o.cuts < maxCuts && (!unknown || o.repeatable):
			o.cuts++
			again = append(again, o)
		case unknown:
			w.finish(o, fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, err))
		default:
			w.finish(o, fmt.Errorf("%w: %w", session.ErrUnavailable, err))
		}
	}
	w.handBack(again)
}

// maxCuts bounds how often an operation is sent again because its connection broke.
const maxCuts = 5

// maxTries bounds how often an operation is done again. More means a fault, or a row that is
// held for very long.
const maxTries = 50

// handBack puts operations back, in front of their senders' later ones. It leaves out operations
// whose callers left meanwhile, and ends operations with too many tries.
func (w *Worker) handBack(batch []*Operation) {
	for _, o := range batch {
		switch {
		case o.tries > maxTries && o.waited.Load() && len(o.own) > 0:
			w.finish(o, ErrUnderWay)
		case o.tries > maxTries:
			w.finish(o, fmt.Errorf("%w: tried %d times without an outcome", session.ErrBusy, o.tries))
		case o.requeue():
			w.again = append(w.again, o)
		default:
			w.ended(o)
		}
	}
	w.PutBack(w.again...)
	clear(w.again)
	w.again = w.again[:0]
}
