package locked

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Operation is one entry of a worker's queue: either one caller's operation or a group. A group consists of
// plain hits that a lane has passed to the worker. Each hit of a group has a caller of its own.
type Operation struct {
	*queue.Ticket // the ticket of the single caller; nil for a group
	from          queue.SenderID
	hits          []*queue.Hit       // the hits of a group; nil for one caller's operation
	targets       []*model.Target    // targets whose later hits must follow the operation
	keys          []model.CounterKey // counters to be locked
	own           []receiptKey       // the ids of the operation itself
	others        []receiptKey       // other ids whose receipts the operation needs
	// repeatable means that all parts of the operation have ids, so it may be sent again if its outcome is
	// unknown.
	repeatable bool
	hasty      bool // the caller waits no longer than its deadline
	// do applies the operation to the locked rows and sets its result. If do returns an error, it has changed
	// nothing and may be called again.
	do     func(*transaction) error
	failed func(error) // sets an error as the result; nil for a group
	// target and refused are the input for the memory of refusals.
	target  *model.Target
	refused bool

	// The following fields are set by earlier transactions for the next transaction.
	tries    int      // the number of failed tries
	cuts     int      // the number of times that the connection broke
	insert   bool     // the own rows of the operation's customers must be inserted
	hours    []*hours // the finished hours to be read
	numbered bool     // the number of the newest change must be read
	alone    bool     // the operation needs a transaction without other customers
	single   bool     // the operation needs a transaction of its own
	doErr    error    // the last result of do
	again    bool     // the operation runs again in the next transaction

	waited  atomic.Bool // another transaction held the locks of the counters for long
	unknown atomic.Bool // the outcome of an earlier transaction was lost, so the operation may have been done
}

// hours contains the finished hours of a customer's own counter in [from, to). After they have been read, it
// contains the units of the hours and the sums of their adjustments.
type hours struct {
	counter  model.CounterKey
	from, to int64
	units    map[int64]int64
	adjusted map[int64]int64
}

// lock adds counters that must be locked.
func (o *Operation) lock(keys ...model.CounterKey) {
	o.keys = append(o.keys, keys...)
	slices.SortFunc(o.keys, model.CompareKeys)
	o.keys = slices.Compact(o.keys)
}

// identify adds an ID of the operation. Without an ID, the operation is not repeatable.
func (o *Operation) identify(customer int64, id model.ID) {
	if !id.Given() {
		o.repeatable = false
		return
	}
	o.own = append(o.own, receiptKey{customer, id.Key})
	if id.Batch != nil {
		o.others = append(o.others, receiptKey{customer, id.Batch.Key})
	}
}

// newOperation returns a sender's operation on a target's counters. The operation may have an ID.
func (w *Worker) newOperation(from queue.SenderID, t *model.Target, id model.ID) *Operation {
	ticket := queue.NewTicket(&w.Session)
	o := &Operation{Ticket: &ticket, from: from, targets: []*model.Target{t.Base()}, target: t, repeatable: true}
	o.lock(t.Keys()...)
	o.identify(t.Counters[0].Key.Customer, id)
	return o
}

// NewGroup returns a group of plain hits of one sender on a target's counters.
func NewGroup(t *model.Target, hits []*queue.Hit) *Operation {
	o := &Operation{hits: hits, from: hits[0].From, targets: []*model.Target{t.Base()}, target: t}
	o.keys = t.Keys()
	o.do = o.decide
	return o
}

// decide decides a group on locked counters.
func (o *Operation) decide(tx *transaction) error {
	t := o.target
	if t.Lost {
		return ErrLost
	}
	counters, instant, err := tx.admit(t)
	if err != nil {
		return err
	}
	g, rows := queue.Group{Target: t, Hits: o.hits}, rowsOf(counters)
	g.Decide(rows, t.Instant(tx.now), nil)
	if o.refused = g.Refused; g.Refused && t.Notifies() {
		for _, h := range o.hits {
			if !h.Result.Decision.Allowed {
				tx.refuse(&h.Result.Decision)
			}
		}
	}
	if g.Admitted > 0 {
		if err = tx.makeValues(counters); err != nil {
			return err
		}
		for i, c := range counters {
			c.Row, c.dirty = rows[i], true
		}
		tx.addUnits(t, counters, g.Cost, instant)
	}
	return nil
}

// join adds the hits of a later group on the same counters. It returns false, and changes nothing, if the groups
// must remain separate.
func (o *Operation) join(later *Operation) bool {
	if later.tries > 0 || o.tries > 0 || later.alone || o.alone || later.single || o.single || len(o.hits)+len(later.hits) > queue.MaxBatch {
		return false
	}
	o.hits = append(o.hits, later.hits...)
	return true
}

// goesWith reports whether two operations may share a transaction. An operation with alone set may share a
// transaction only with another such operation of the same customer, if each of the two operations has only one
// customer.
func (o *Operation) goesWith(other *Operation) bool {
	if o.alone != other.alone || o.single || other.single {
		return false
	}
	customer, single := o.customer()
	theirs, alike := other.customer()
	return !o.alone || single && alike && customer == theirs
}

// customer returns the first customer whose counters the operation concerns. single reports that there is no other
// customer.
func (o *Operation) customer() (customer int64, single bool) {
	first, last := o.keys[0].Customer, o.keys[len(o.keys)-1].Customer
	return first, first == last
}

// Take moves a queued operation into a transaction. requeue moves the operation back to the queue, unless its
// callers have left.
func (o *Operation) Take() bool    { return o.each((*queue.Ticket).Take) }
func (o *Operation) requeue() bool { return o.each((*queue.Ticket).Requeue) }

func (o *Operation) each(move func(*queue.Ticket) bool) bool {
	if o.hits == nil {
		return move(o.Ticket)
	}
	o.hits = slices.DeleteFunc(o.hits, func(h *queue.Hit) bool { return !move(&h.Ticket) })
	return len(o.hits) > 0
}

// Sender implements queue.Item.
func (o *Operation) Sender() queue.SenderID { return o.from }

// Hits implements queue.Item.
func (o *Operation) Hits() int { return max(1, len(o.hits)) }

// Rows implements queue.Item. It returns the approximate number of rows that the operation locks or reads by key.
func (o *Operation) Rows() int { return max(len(o.keys), len(o.own)) }

// outcome returns the error for the caller. If an earlier outcome was lost, an error that reports that nothing was
// done becomes ErrOutcomeUnknown.
func (o *Operation) outcome(err error) error {
	if !o.unknown.Load() {
		return err
	}
	for _, unsure := range []error{session.ErrBusy, session.ErrUnavailable, session.ErrNoSession, ErrUnderWay, session.ErrInternal} {
		if errors.Is(err, unsure) {
			return fmt.Errorf("%w: %v", session.ErrOutcomeUnknown, err) //nolint:errorlint // it is no longer what it says
		}
	}
	return err
}

// Finish delivers the result to the callers.
func (o *Operation) Finish(err error) {
	err = o.outcome(err)
	for _, h := range o.hits {
		if err != nil {
			h.Result = queue.Result{Err: err}
		}
		h.Ring()
	}
	if o.hits != nil {
		return
	}
	if err != nil {
		o.failed(err)
	}
	o.Ring()
}
