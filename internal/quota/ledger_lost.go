package quota

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
)

// lost ends a transaction that failed. One that did not come to its commit was rolled back,
// and so was what the server itself says so of. What has an id may be sent again in any
// case: if it was done, it is found done.
func (l *ledger) lost(batch []*operation, err error, committing bool) {
	n := l.node
	rolled := rolledBack(err)
	if !rolled {
		l.session.drop()
	}
	switch {
	case errors.Is(err, errMisread):
		n.Log.Error("an operation's transaction was given up", "error", err)
		l.fail(batch, fmt.Errorf("%w: %w", ErrInternal, err))
	case rolled && (postgres.Retryable(err) || duplicate(err)):
		if !duplicate(err) {
			l.beCautious()
		}
		n.totals.retried.Add(int64(sizeOf(batch)))
		for _, o := range batch {
			o.tries++
		}
		l.handBack(batch)
	case rolled && hopeless(err):
		l.fail(batch, l.session.refuse(err))
	case rolled && batch[0].alone:
		l.logFault("the database refused an operation's statement", batch[0].keys[0], err)
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
			l.node.totals.unknown.Add(int64(o.size()))
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
