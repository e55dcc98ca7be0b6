package ledger

import (
	"errors"
	"fmt"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// applyLimit bounds how long rows are held while operations are done on them; those that
// are left have the next transaction.
const applyLimit = 300 * time.Millisecond

// apply does the operations one after the other. again are operations for the next transaction:
// they need rows that this one has not locked or read, or the time ran out.
//
// spoiled is an operation that the model could not do; its caller has been told. It may have
// left the books half done, so the books must not be written.
func (l *Ledger) apply(b *books, batch []*Operation) (again []*Operation, spoiled *Operation) {
	began := l.node.Stopwatch()
	for i, o := range batch {
		if i > 0 && l.node.Stopwatch()-began > applyLimit {
			for _, late := range batch[i:] {
				late.again = true
			}
			return append(again, batch[i:]...), nil
		}
		b.wanted, o.again = b.wanted[:0], false
		if o.settled = l.do(b, o); errors.Is(o.settled, errSpoiled) {
			l.finish(o, fmt.Errorf("%w: %w", session.ErrInternal, o.settled))
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
func (l *Ledger) do(b *books, o *Operation) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: %v", errSpoiled, fault)
			key := o.keys[0]
			if n := len(b.wanted); n > 0 { // the last that was opened, of whichever customer
				key = b.wanted[n-1]
			}
			l.logFault("an operation cannot be done on what its counters hold", key, err)
		}
	}()
	return o.do(b)
}

func (l *Ledger) logFault(what string, key model.CounterKey, err error) {
	l.node.Log.Error(what, "customer_id", key.Customer, "meter_id", key.Meter, "error", err)
}
