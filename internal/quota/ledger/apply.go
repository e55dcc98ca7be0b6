package ledger

import (
	"errors"
	"slices"
	"time"

	"quotad/internal/quota/model"
)

// applyLimit bounds how long rows are held while operations are done on them; those that
// are left have the next transaction.
const applyLimit = 300 * time.Millisecond

// customerLimit is from when on a transaction does no more operations of a customer. Views of
// thousands of holds take milliseconds each, and others wait for the same commit.
const customerLimit = 20 * time.Millisecond

// late reports whether a customer of an operation has had its time in this transaction.
func (l *Ledger) late(o *Operation) bool {
	return slices.ContainsFunc(o.keys, func(k model.CounterKey) bool { return l.spent[k.Customer] >= customerLimit })
}

// apply does the operations one after the other. again are operations for the next transaction:
// they need rows that this one has not locked or read, or the time ran out.
//
// The operations of a customer whose time ran out keep their order. So one that is put off puts
// off all later ones of its customers.
func (l *Ledger) apply(b *books, batch []*Operation) (again []*Operation) {
	began := l.node.Stopwatch()
	clear(l.spent)
	for i, o := range batch {
		start := l.node.Stopwatch()
		if i > 0 && start-began > applyLimit {
			for _, late := range batch[i:] {
				late.again = true
			}
			return append(again, batch[i:]...)
		}
		if o.again = l.late(o); o.again {
			for _, k := range o.keys {
				l.spent[k.Customer] = customerLimit
			}
			again = append(again, o)
			continue
		}
		b.wanted = b.wanted[:0]
		o.settled = o.do(b)
		if customer, single := o.customer(); single {
			l.spent[customer] += l.node.Stopwatch() - start
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
	return again
}

func (l *Ledger) logFault(what string, key model.CounterKey, err error) {
	l.node.Log.Error(what, "customer_id", key.Customer, "meter_id", key.Meter, "error", err)
}
