package ledger

import (
	"context"
	"errors"

	"quotad/internal/quota/model"
)

// ErrClosedPeriod says that the billing period of an instant has been over for so long that
// its usage is not written to any more.
var ErrClosedPeriod = errors.New("the billing period of that instant is over; nothing was done")

// Adjustment is a correction of usage, which says nothing of limits.
type Adjustment struct {
	Target *model.Target // of the customer's meter
	ID     model.ID      // required
	Cost   int64         // units, −MaxNumber … MaxNumber but not 0; below 0 they are taken off
	At     int64         // in whose hour they are booked, µs since the Unix epoch; 0: now
	Reason string        // why, for people; at most MaxReason bytes
}

// MaxReason bounds an adjustment's reason, in bytes.
const MaxReason = 500

// Adjusted is what an adjustment did.
type Adjusted struct {
	At       int64 // the instant in whose hour it was booked, µs
	Replayed bool
}

// Adjust corrects the usage of an hour of a billing period that is open.
//
// Errors: ErrFuture, ErrClosedPeriod, ErrOtherPayload, ErrUnderWay, and those of Decide.
func (l *Ledger) Adjust(ctx context.Context, a Adjustment) (Adjusted, error) {
	o := l.newOperation(a.Target, a.ID)
	return submit(l, o, func(b *books) (Adjusted, error) { return b.adjust(&a) }).result(ctx)
}

func (b *books) adjust(a *Adjustment) (out Adjusted, err error) {
	t := a.Target
	done, err := b.find(t.Counters[0].Key.Customer, a.ID)
	if err != nil {
		return out, err
	}
	if done != nil {
		return Adjusted{done.at, true}, nil
	}
	accounts, instant, err := b.open(t)
	if err != nil {
		return out, err
	}
	if out.At = a.At; a.At == 0 {
		out.At = instant
	}
	if out.At > instant {
		return out, ErrFuture
	}
	if _, end := t.Period(out.At); end+CloseDelay <= instant {
		return out, ErrClosedPeriod
	}
	hour, _ := t.RunningHour(out.At)
	b.adjusted = append(b.adjusted, adjustment{accounts[0].hourKey(hour), a.ID.Key, a.Cost, instant, a.Reason})
	b.issue(t, a.ID, receipt{at: out.At, cost: a.Cost})
	return out, nil
}
