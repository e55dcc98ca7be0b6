package locked

import (
	"context"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Fence is a boundary on one meter of a customer before which no more usage may be booked.
type Fence struct {
	// Target is the target of the customer's meter without attributes. Its periods must include Boundary, unless
	// no hits follow, as for an archived customer.
	Target *model.Target
	// Boundary is the end of a billing period, µs. The customer's clock must have reached it.
	Boundary int64
}

// fenceRows is the maximum number of counters that one transaction fences. Hits in the same transaction wait for
// its end for some milliseconds.
const fenceRows = 250

// Fence fences customers' own counters, and returns an error or nil for each counter. Every later charge to a
// fenced counter is judged at Boundary or later, because the charge locks the fenced row, or swaps the row after
// reading it. A hit that was judged before the fence, and whose statement arrives after the fence, fails to
// swap. Therefore all usage from before Boundary is in the usage table and no longer changes.
//
// For each counter, Fence creates a missing row, removes expired holds, books the units of an hour that began
// before Boundary, and advances the limits and the row to Boundary. Fence ignores a counter that has already
// passed Boundary, so a repeated fence does no harm.
//
// Counters of attribute values need no fence, because they book no usage. A charge to such a counter first locks
// the customer's own counter, and is judged at the own counter's instant or later. The reason is that hits on
// several counters are never swapped (see lane.Lane), and that transaction.open uses the latest of all instants.
//
// Some errors concern one counter only: *model.StaleError if the target must be resolved again, ErrBusy if
// another transaction has locked the row, and ErrInternal if the row cannot be read. The errors of Decide
// concern all counters of a transaction. The caller must fence counters with an error again.
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

// fencing returns an operation on the own counters of fences. The operation may be sent again if its outcome is
// unknown.
func (w *Worker) fencing(fences []Fence) *Operation {
	ticket := queue.NewTicket(&w.Session)
	o := &Operation{Ticket: &ticket, repeatable: true, insert: true, numbered: true} // each fence has its own error
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
		case !own.there: // the row was removed after it was created
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
	if late { // even if the target assigns the units to the same hour
		tx.addUsage(own.hourKey(own.hour), own.units)
		own.units = 0
	}
	tx.turn(own, hour)
	own.touch()
	return nil
}
