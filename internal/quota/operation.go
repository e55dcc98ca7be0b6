package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// operation is one caller's operation on its way through a ledger.
type operation struct {
	*ticket
	keys   []CounterKey // to be locked
	own    []receiptKey // its ids
	others []receiptKey // that are to be looked up, too
	// repeatable: all of it has ids, so that it may be sent again when its outcome is unknown.
	repeatable bool
	weight     int // hits in it
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

// hours are finished hours of a customer's own counter, [from, to), and once they
// have been read their units and the sums of their adjustments.
type hours struct {
	counter  CounterKey
	from, to int64
	units    map[int64]int64
	adjusted map[int64]int64
}

// lock adds counters to be locked.
func (o *operation) lock(keys ...CounterKey) {
	o.keys = append(o.keys, keys...)
	slices.SortFunc(o.keys, compareKeys)
	o.keys = slices.Compact(o.keys)
}

// identify adds an ID of the operation; without one it is not repeatable.
func (o *operation) identify(customer int64, id ID) {
	if !id.given() {
		o.repeatable = false
		return
	}
	o.own = append(o.own, receiptKey{customer, id.key})
}

// keys are the keys of a target's counters.
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
	o := &operation{ticket: &ticket, target: t, weight: 1, repeatable: true}
	o.lock(t.keys()...)
	o.identify(t.Counters[0].Key.Customer, id)
	return o
}

// outcome is what may be said of an error: that nothing was done only where that is sure.
func (o *operation) outcome(err error) error {
	if !o.unknown.Load() {
		return err
	}
	for _, unsure := range []error{ErrBusy, ErrUnavailable, ErrUnderWay, ErrInternal} {
		if errors.Is(err, unsure) {
			return fmt.Errorf("%w: %v", ErrOutcomeUnknown, err) //nolint:errorlint // it is no longer what it says
		}
	}
	return err
}

// finish hands the result out.
func (o *operation) finish(err error) {
	if err = o.outcome(err); err != nil {
		o.failed(err)
	}
	o.ring()
}

// pending is an operation whose caller waits for its result.
type pending[T any] struct {
	*operation
	ledger *ledger
	out    T
	err    error
}

// submit hands an operation to its ledger.
func submit[T any](l *ledger, o *operation, do func(*books) (T, error)) *pending[T] {
	p := &pending[T]{operation: o, ledger: l}
	o.do = func(b *books) (err error) {
		p.out, err = do(b)
		return err
	}
	o.failed = func(err error) { p.err = err }
	if err := l.enqueue(o); err != nil {
		o.finish(err)
	}
	return p
}

// result waits for it. Errors: those of Decide, ErrUnderWay and the operation's own.
func (p *pending[T]) result(ctx context.Context) (none T, err error) {
	if err = p.ledger.wait(ctx, p.operation); err != nil {
		return none, err // the operation may still be writing to out
	}
	if p.err != nil {
		return none, p.err
	}
	return p.out, nil
}
