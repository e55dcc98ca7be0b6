package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// operation is one caller's operation on its way through a ledger, or a run: plain hits that a
// lane has handed over, each with a caller of its own.
type operation struct {
	*ticket              // of one caller's
	hits    []*hit       // of a run
	targets []*Target    // whose counters it is on: hits on them follow it
	keys    []CounterKey // to be locked
	own     []receiptKey // its ids
	others  []receiptKey // that are to be looked up, too
	// repeatable: all of it has ids, so that it may be sent again when its outcome is unknown.
	repeatable bool
	// do does it on the books and sets its result. With an error nothing of it was done,
	// and it may be done again.
	do     func(*books) error
	failed func(error) // sets its result; not a run's
	// target and refused are what the memory of refusals learns from it.
	target  *Target
	refused bool

	// What an earlier transaction handed it back with.
	tries   int
	cuts    int    // of these, for its connection broke
	insert  bool   // the own rows of its customers are missing
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

// newOperation is an operation on a target's counters, which may have an ID.
func (l *ledger) newOperation(t *Target, id ID) *operation {
	ticket := newTicket(&l.session)
	o := &operation{ticket: &ticket, targets: []*Target{t.base()}, target: t, repeatable: true}
	o.lock(t.keys()...)
	o.identify(t.Counters[0].Key.Customer, id)
	return o
}

// newRun is a run of plain hits on a target's counters.
func newRun(t *Target, hits []*hit) *operation {
	o := &operation{hits: hits, targets: []*Target{t.base()}, target: t}
	o.keys = t.keys()
	o.do = o.decide
	return o
}

// decide decides a run on locked accounts.
func (o *operation) decide(b *books) error {
	t := o.target
	if t.Lost {
		return ErrLost
	}
	accounts, instant, err := b.open(t)
	if err != nil {
		return err
	}
	g, rows := hitGroup{target: t, hits: o.hits}, rowsOf(accounts)
	g.decide(rows, instant, nil)
	if o.refused = g.refused; g.admitted > 0 {
		for i, a := range accounts {
			a.row, a.dirty = rows[i], true
		}
		b.book(t, accounts, g.cost, instant)
	}
	return nil
}

// join adds the hits of a later run on the same counters.
func (o *operation) join(later *operation) bool {
	if later.tries > 0 || o.tries > 0 || later.alone || o.alone || len(o.hits)+len(later.hits) > maxBatch {
		return false
	}
	o.hits = append(o.hits, later.hits...)
	return true
}

// goesWith reports whether it may be in one transaction with another: what must go alone goes
// with others of its customer only, if it has no other.
func (o *operation) goesWith(other *operation) bool {
	if o.alone != other.alone {
		return false
	}
	customer, single := o.customer()
	theirs, alike := other.customer()
	return !o.alone || single && alike && customer == theirs
}

// customer is the first one whose counters it is on; single says that there is no other.
func (o *operation) customer() (customer int64, single bool) {
	first, last := o.keys[0].Customer, o.keys[len(o.keys)-1].Customer
	return first, first == last
}

// take moves what is queued into a transaction; requeue moves it back, unless its callers
// left.
func (o *operation) take() bool    { return o.each((*ticket).take) }
func (o *operation) requeue() bool { return o.each((*ticket).requeue) }

func (o *operation) each(move func(*ticket) bool) bool {
	if o.hits == nil {
		return move(o.ticket)
	}
	o.hits = slices.DeleteFunc(o.hits, func(h *hit) bool { return !move(&h.ticket) })
	return len(o.hits) > 0
}

// size is how many hits it has.
func (o *operation) size() int { return max(1, len(o.hits)) }

// rows is how many rows it locks or reads by their keys, about.
func (o *operation) rows() int { return max(len(o.keys), len(o.own)) }

// outcome is what may be said of an error: that nothing was done only where that is sure.
func (o *operation) outcome(err error) error {
	if !o.unknown.Load() {
		return err
	}
	for _, unsure := range []error{ErrBusy, ErrUnavailable, ErrNoSession, ErrUnderWay, ErrInternal} {
		if errors.Is(err, unsure) {
			return fmt.Errorf("%w: %v", ErrOutcomeUnknown, err) //nolint:errorlint // it is no longer what it says
		}
	}
	return err
}

// finish hands the result out.
func (o *operation) finish(err error) {
	err = o.outcome(err)
	for _, h := range o.hits {
		if err != nil {
			h.result = Result{Err: err}
		}
		h.ring()
	}
	if o.hits != nil {
		return
	}
	if err != nil {
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
