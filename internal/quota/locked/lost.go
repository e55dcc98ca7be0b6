package locked

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/quota/session"
)

// lost ends a transaction that failed. A transaction was rolled back if it did not come to its
// commit, or if postgres.NotCommitted says so. Operations with ids may be sent again in any case:
// if they were done, they find their receipts.
func (w *Worker) lost(batch []*Operation, err error, committing bool) {
	n := w.node
	unknown := committing && !postgres.NotCommitted(err)
	rolled := !unknown && session.RolledBack(err)
	if !rolled {
		w.Session.Drop()
	}
	switch {
	case session.Misread(err):
		n.Log.Error("an operation's transaction was given up", "error", err)
		w.fail(batch, fmt.Errorf("%w: %w", session.ErrInternal, err))
	case rolled && (postgres.Retryable(err) || duplicate(err)):
		if !duplicate(err) {
			w.BeCautious()
		}
		n.Totals.Retried.Add(int64(sizeOf(batch)))
		for _, o := range batch {
			o.tries++
		}
		w.handBack(batch)
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

// duplicate reports whether a receipt was there already when it was to be written.
func duplicate(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "23505"
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
