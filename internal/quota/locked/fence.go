package locked

import (
	"context"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Fence is an instant behind which no more usage is to be booked before it, on one meter of a
// customer.
type Fence struct {
	// Target is that of the customer's meter, for no attributes. Its periods must know Boundary,
	// unless no hits follow, as of an archived customer.
	Target *model.Target
	// Boundary is the end of a billing period, µs. The customer's clock must show it by now.
	Boundary int64
}

// fenceRows is how many counters one transaction fences. Hits that are in the same transaction
// wait for its end, some milliseconds.
const fenceRows = 250

// Fence fences customers' own counters, and returns an error or nil for each. Whatever is charged
// to a fenced counter from then on is judged at Boundary or later, by its lock or by a swap that
// sees the fenced row. A hit that was judged before, and whose statement is still on its way,
// loses its swap, however late it arrives. So all usage from before Boundary is in the usage
// table, and stays as it is.
//
// Of each counter, Fence makes the missing row, gives back the holds that have expired, books the
// units of an hour that began before Boundary, and moves limits and row on to Boundary. A counter
// that stands after Boundary already is left alone. So the same fence again does no harm.
//
// Counters of attributes' values need no fence. They book no usage, and whatever charges one
// locks the customer's own counter first and is judged at its instant or later: hits on several
// counters are never swapped (see lane.Lane), and transaction.open takes the latest of all instants.
//
// Errors, each of its own counter only: *model.StaleError, to be resolved again; ErrBusy when
// somebody else holds the row; ErrInternal when the row cannot be read. The errors of Decide
// concern all counters of a transaction. Fence again what had an error.
func (w *Worker) Fence(ctx context.Context, fences []Fence) []error {
	errs := make([]error, 0, len(fences))
	for some := range slices.Chunk(fences, fenceRows) {
		done, err := submit(w, w.fencing(some), func(tx *transaction) ([]error, error) { return tx.fenceAll(some) }).result(ctx)
		if err != nil {
			done = slices.Repeat([]error{err}, len(some))
		}
		errs = append(errs, done...)
	}
	return errs
}

// fencing is an operation on the own counters of fences. It may be sent again when its outcome is
// unknown.
func (w *Worker) fencing(fences []Fence) *Operation {
	ticket := queue.NewTicket(&w.Session)
	o := &Operation{Ticket: &ticket, repeatable: true, insert: true, numbered: true} // each fence has an error of its own
	keys := make([]model.CounterKey, len(fences))
	for i := range fences {
		keys[i] = fences[i].Target.Counters[0].Key
		o.targets = append(o.targets, fences[i].Target.Base())
	}
	o.lock(keys...)
	return o
}

func (tx *transaction) fenceAll(fences []Fence) ([]error, error) {
	errs := make([]error, len(fences))
	for i := range fences {
		switch own := tx.counters[fences[i].Target.Counters[0].Key]; {
		case own.held:
			errs[i] = session.ErrBusy
		case !own.there: // it was removed since it was made
			return nil, errMissingRow
		default:
			errs[i] = tx.fence(&fences[i], own)
		}
	}
	return errs, nil
}

// fence fences one counter.
func (tx *transaction) fence(f *Fence, own *lockedRow) error {
	t := f.Target.Base()
	if _, err := tx.openAny(t); err != nil {
		return err
	}
	late := own.units > 0 && own.hour < f.Boundary
	if own.At >= f.Boundary && !late {
		return nil
	}
	tx.stand(t, own, f.Boundary)
	hour, _ := t.RunningHour(own.At)
	if late { // even where the target takes it for the same hour
		tx.addUsage(own.hourKey(own.hour), own.units)
		own.units = 0
	}
	tx.turn(own, hour)
	own.touch()
	return nil
}
