package quota

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// operation is one caller's operation on its way through a ledger.
type operation struct {
	*ticket
	keys   []CounterKey // to be locked
	ids    []receiptKey // to be looked up
	weight int          // hits in it
	// do does it on the books and sets its result. With an error nothing of it was done,
	// and it may be done again.
	do     func(*books) error
	failed func(error) // sets its result
	// target and refused are what the memory of refusals learns from it.
	target  *Target
	refused bool

	// What an earlier transaction handed it back with.
	tries   int
	cuts    int    // of these, for its connection broke
	insert  bool   // rows of its counters are missing
	hours   *hours // finished hours to be read
	alone   bool   // it goes in a transaction of its own
	settled error  // why it was not done, or nil
	again   bool   // it is done again in the next transaction

	waited  atomic.Bool // somebody held its counters for long
	unknown atomic.Bool // an earlier transaction's outcome was lost: it may have been done
}

// hours are finished hours of a customer's own counter, [from, to), and their units once
// they have been read.
type hours struct {
	counter  CounterKey
	from, to int64
	units    map[int64]int64
}

// lock adds counters to be locked.
func (o *operation) lock(keys ...CounterKey) {
	o.keys = append(o.keys, keys...)
	slices.SortFunc(o.keys, compareKeys)
	o.keys = slices.Compact(o.keys)
}

// look adds an ID to be looked up.
func (o *operation) look(customer int64, id ID) {
	if id.given() {
		o.ids = append(o.ids, receiptKey{customer, id.key})
	}
}

// keysOf are the keys of a target's counters.
func (t *Target) keys() []CounterKey {
	keys := make([]CounterKey, len(t.Counters))
	for i := range t.Counters {
		keys[i] = t.Counters[i].Key
	}
	return keys
}

// newOperation is an operation on a target's counters, which may have an ID.
func (l *ledger) newOperation(t *Target, id ID) *operation {
	ticket := newTicket(&l.session)
	o := &operation{ticket: &ticket, target: t, weight: 1}
	o.lock(t.keys()...)
	o.look(t.Counters[0].Key.Customer, id)
	return o
}

// outcome is what may be said of an error: that nothing was done only where that is sure.
func (o *operation) outcome(err error) error {
	if o.unknown.Load() && (errors.Is(err, ErrBusy) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnderWay)) {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

// finish hands the result out.
func (o *operation) finish(err error) {
	if err = o.outcome(err); err != nil {
		o.failed(err)
	}
	o.done <- struct{}{}
}
