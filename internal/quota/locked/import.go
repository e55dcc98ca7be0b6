package locked

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// The following errors report invalid Imports. Nothing was done.
var (
	// ErrNoSuchLimit means that the plan has no limit of that name on the meter that can have an opening balance.
	// A concurrency limit cannot have an opening balance.
	ErrNoSuchLimit = errors.New("the plan has no such limit on the meter, or it is one of concurrency; nothing was done")
	// ErrFuture means that the instant of the usage is in the future.
	ErrFuture = errors.New("the instant is in the future; nothing was done")
)

// TooMuchError reports that an opening balance exceeds the maximum of a limit.
type TooMuchError struct{ Most int64 }

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("the limit can have at most %d used; nothing was done", e.Most)
}

// Import is usage from the time before the customer used quotad. It contains either usage at an instant, or the
// number of units that count against one limit now.
type Import struct {
	Target *model.Target // the target of the customer's meter with the attributes
	ID     model.ID      // required

	// Cost is the number of units (1 … MaxNumber) that were used at At, µs since the Unix epoch and not in the
	// future. The units are usage of At's hour, or an adjustment of that hour if At's billing period has ended.
	// They also count in each running window that contains At, even beyond the window's limit.
	Cost, At int64

	// Limit is the name of a limit, or empty for an Import of usage. From now on, Used units (0 … MaxNumber) count
	// against this limit and replace the units that counted before. No usage is booked, so Cost and At must be 0.
	Limit string
	Used  int64

	// SetsLevel means that the level of a level meter is Level units (0 … MaxNumber) from now on, regardless of
	// limits. Cost, At and Limit must be zero.
	SetsLevel bool
	Level     int64
}

// Imported is the result of an Import.
type Imported struct {
	Replayed bool // the import had been done before
	Err      error
}

// Import queues an import, and returns a function that waits for the result. Imports of one customer and meter are
// done in their order.
//
// Errors: ErrOtherPayload, ErrUnderWay, ErrNoSuchLimit, ErrFuture, *TooMuchError, and those of Decide.
//
// If patient is false, wait does not wait for a transaction beyond its context.
func (w *Worker) Import(from queue.SenderID, in *Import) (wait func(ctx context.Context, patient bool) Imported) {
	p := submit(w, w.newOperation(from, in.Target, in.ID), func(tx *transaction) (bool, error) { return tx.takeOver(in) })
	return func(ctx context.Context, patient bool) (out Imported) {
		p.hasty = !patient
		out.Replayed, out.Err = p.result(ctx)
		return out
	}
}

// takeOver performs one import.
func (tx *transaction) takeOver(in *Import) (replayed bool, err error) {
	t := in.Target
	if t.Level && !in.SetsLevel {
		return false, ErrLevel
	}
	if !t.Level && in.SetsLevel {
		return false, ErrNoLevel
	}
	done, err := tx.find(t.Counters[0].Key.Customer, in.ID)
	if err != nil || done != nil {
		return done != nil, err
	}
	counters, instant, err := tx.open(t)
	if err != nil {
		return false, err
	}
	if in.SetsLevel {
		err = tx.makeLevel(t, counters, in.Level, instant)
	} else if in.Limit != "" {
		err = tx.setUsed(t, counters, instant, in)
	} else if in.At > instant {
		err = ErrFuture
	} else {
		tx.usedAt(t, counters, instant, in)
	}
	if err == nil {
		tx.issue(t, in.ID, receipt{at: instant, cost: in.Cost})
	}
	return false, err
}

// usedAt books units of a past instant, and charges them to windows in which they still count. In a billing period
// that has ended, they are an adjustment.
func (tx *transaction) usedAt(t *model.Target, counters []*lockedRow, instant int64, in *Import) {
	for i, c := range counters {
		t.Backdate(i, &c.Row, in.At, in.Cost)
		c.touch()
	}
	own := counters[0]
	hour, _ := t.RunningHour(in.At)
	if ended(t, in.At, instant) {
		tx.correct(own, hour, in.ID, in.Cost, instant, "import")
		return
	}
	tx.moveCap(own, hour, in.Cost)
	if now, _ := t.RunningHour(own.At); hour == now {
		tx.turn(own, hour)
		own.units = model.AddUpTo(own.units, in.Cost)
	} else {
		tx.addUsage(own.hourKey(hour), in.Cost)
	}
	own.total = model.AddUpTo(own.total, in.Cost)
}

// setUsed sets the number of units that count against a limit.
func (tx *transaction) setUsed(t *model.Target, counters []*lockedRow, instant int64, in *Import) error {
	for i, c := range counters {
		limits := t.Counters[i].Limits
		at := slices.IndexFunc(limits, func(l *model.Limit) bool { return l.Name == in.Limit && !l.IsCap() })
		if at < 0 {
			continue
		}
		if l := limits[at]; l.Algorithm.Refills() && in.Used > l.Burst {
			return &TooMuchError{l.Burst}
		}
		t.SetUsed(i, at, &c.Row, in.Used, instant)
		c.touch()
		return nil
	}
	return ErrNoSuchLimit
}
