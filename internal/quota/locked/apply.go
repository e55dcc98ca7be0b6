package locked

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
		tx.wanted = tx.wanted[:0]
		o.settled = o.do(tx)
		if customer, single := o.customer(); single {
			w.spent[customer] += w.node.Stopwatch() - start
		}
		switch {
		case errors.Is(o.settled, errHeldRow): // the caller says how long to wait
			o.waited.Store(true)
			o.tries--
		case errors.Is(o.settled, errMissingRow):
			o.insert = true
		case errors.Is(o.settled, errMissingLock):
		case errors.Is(o.settled, errMissingHour):
			o.hours = tx.missing
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

func (w *Worker) logFault(what string, key model.CounterKey, err error) {
	w.node.Log.Error(what, "customer_id", key.Customer, "meter_id", key.Meter, "error", err)
}
