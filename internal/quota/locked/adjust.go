package locked

import (
	"context"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// Adjustment is a correction of usage. It does not affect limits, except for a cap.
type Adjustment struct {
	Target *model.Target // the target of the customer's meter
	ID     model.ID      // required
	Cost   int64         // units, −MaxNumber … MaxNumber except 0; negative units are subtracted
	At     int64         // the instant in whose hour the units are booked, µs since the Unix epoch; 0: now
	Reason string        // the reason, for people; at most MaxReason bytes
	Audit  *Audit        // nil: the adjustment is not audited
}

// Audit is an entry of the audit trail that is written with an operation, see store.Audit.
type Audit struct {
	Actor, Request          string
	Action, Subject, Target string
	After                   []byte // JSON
}

// MaxReason is the maximum length of an adjustment's reason, in bytes.
const MaxReason = 500

// Adjusted is the result of an adjustment.
type Adjusted struct {
	At       int64 // the instant in whose hour the adjustment was booked, µs
	Replayed bool
}

// Adjust corrects the usage of an hour in the running billing period or in an earlier period.
//
// Errors: ErrFuture, ErrOtherPayload, ErrUnderWay, and those of Decide.
func (w *Worker) Adjust(ctx context.Context, from queue.SenderID, a Adjustment) (Adjusted, error) {
	o := w.newOperation(from, a.Target, a.ID)
	return submit(w, o, func(tx *transaction) (Adjusted, error) { return tx.adjust(&a) }).result(ctx)
}

func (tx *transaction) adjust(a *Adjustment) (out Adjusted, err error) {
	t := a.Target
	if t.Level {
		return out, ErrLevel
	}
	done, err := tx.find(t.Counters[0].Key.Customer, a.ID)
	if err != nil {
		return out, err
	}
	if done != nil {
		return Adjusted{done.at, true}, nil
	}
	counters, instant, err := tx.open(t)
	if err != nil {
		return out, err
	}
	if out.At = a.At; a.At == 0 {
		out.At = instant
	}
	if out.At > instant {
		return out, ErrFuture
	}
	hour, _ := t.RunningHour(out.At)
	tx.correct(counters[0], hour, a.ID, a.Cost, instant, a.Reason)
	if a.Audit != nil {
		tx.audits = append(tx.audits, audited{a.Audit, t.Counters[0].Key.Customer})
	}
	tx.issue(t, a.ID, receipt{at: out.At, cost: a.Cost})
	return out, nil
}

// correct adds an adjustment of an own counter's hour. It changes no limit except a cap.
func (tx *transaction) correct(own *lockedRow, hour int64, id model.ID, units, instant int64, reason string) {
	tx.moveCap(own, hour, units)
	tx.adjusted = append(tx.adjusted, adjustment{own.hourKey(hour), id.Key, units, instant, reason})
}

// ended reports whether the billing period of the instant at is over at the later instant. The usage of an ended
// period is no longer written, so later changes are adjustments. An instant after a fence is never before the
// fenced end. Before a fence, usage and adjustments add up to the same sum.
func ended(t *model.Target, at, instant int64) bool {
	_, end := t.Period(at)
	return end <= instant
}
