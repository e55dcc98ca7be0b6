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

// Run runs transactions until the engine stops and nothing waits any more.
func (w *Worker) Run(ctx context.Context) {
	defer w.Session.Close()
	_ = w.Session.Ready(ctx) // as in a lane, the first operation finds a session
	w.Session.End()
	w.Inbox.Run(func() { w.Next(ctx) })
}

// Next runs one transaction.
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

// take returns the next batch of waiting operations. It leaves out operations whose callers have left. A batch
// has at most queue.MaxBatch rows, except that a single operation may have more rows. An operation that must be
// isolated shares a batch only with operations of its own customer.
func (w *Worker) take() []*Operation {
	w.batch = w.batch[:0]
	rows := 0
	groups := make(map[senderGroup]*Operation) // groups that later hits may join, because only groups follow them
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

// senderGroup is the key of groups that may be joined. Each group has one sender, so that one sender's hits keep
// their order when they return to the queue.
type senderGroup struct {
	model.GroupKey
	from queue.SenderID
}

// pause waits a while, because other transactions hold the locks of the rows.
func (w *Worker) pause(ctx context.Context) {
	enough := time.NewTimer(skippedPause)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-ctx.Done():
	}
}

// skippedPause is the pause after a transaction that could do nothing, because other transactions held the locks
// of the rows.
const skippedPause = 5 * time.Millisecond

// remember stores the written rows, and updates the memory of refusals before any caller receives a result.
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

// applyLimit is the maximum time for which rows stay locked while operations are applied to them. The remaining
// operations run in the next transaction.
const applyLimit = 300 * time.Millisecond

// customerLimit is the time after which a transaction applies no more operations of a customer. Views of thousands
// of holds take milliseconds each, and other customers wait for the same commit.
const customerLimit = 20 * time.Millisecond

// late reports whether a customer of an operation has used its time in this transaction.
func (w *Worker) late(o *Operation) bool {
	return slices.ContainsFunc(o.keys, func(k model.CounterKey) bool { return w.spent[k.Customer] >= customerLimit })
}

// apply applies the operations one after the other. again contains the operations for the next transaction:
// operations that need rows that this transaction has not locked or read, and operations for which no time is
// left.
//
// The operations of a customer whose time is used up keep their order. Therefore a postponed operation also
// postpones all later operations of its customers.
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
		case errors.Is(o.doErr, errHeldRow): // the caller's context limits the wait
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

// transactionFailed ends a failed transaction. The transaction was rolled back if it failed before its commit,
// or if postgres.NotCommitted reports so. Operations with ids may be sent again in any case, because an
// operation that was done finds its receipt.
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
	case rolled: // one customer's error must not affect other customers, so each customer's operations run separately
		for _, o := range batch {
			o.alone = true
		}
		w.handBack(batch)
	default:
		w.cutOff(batch, err, unknown)
	}
}

// archived ends a transaction in which the database rejected an operation on archived usage. Each operation is
// then repeated in a transaction of its own, so that the other operations of the batch do not fail.
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

// duplicate reports whether a new receipt existed already.
func duplicate(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "23505"
}

// tooLate reports whether a statement took too long, or waited too long for a lock. Because a worker does not wait
// for rows that are locked for long, the cause is a locked table or a slow database, and all hits wait.
func tooLate(err error) bool {
	state := session.StateOf(err)
	return state == "55P03" || state == "57014"
}

// cutOff ends or repeats the operations of a transaction whose connection broke. unknown means that the
// transaction may have been committed.
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

// maxCuts is the maximum number of times that an operation is sent again because its connection broke.
const maxCuts = 5

// maxTries is the maximum number of times that an operation is retried. More tries indicate a bug, or a row that
// is locked for very long.
const maxTries = 50

// handBack returns operations to the queue, in front of their senders' later operations. It leaves out operations
// whose callers have left, and ends operations with too many tries.
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
