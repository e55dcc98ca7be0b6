package locked

import (
	"context"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Ahead is a counter whose last charge is later than the clock.
type Ahead struct {
	Target    *model.Target // the target of the customer's meter without attributes
	Attribute string        // the attribute of the counter: "" for the customer's own
	// NotBefore is the end of the customer's last closed billing period, µs. No usage may be booked before it.
	NotBefore int64
}

// Brought is the result for a counter that was ahead.
type Brought struct {
	Changed bool  // false: the counter is no longer ahead, or does not exist
	Err     error // see BringBack
}

// BringBack sets counters back to the clock, or to NotBefore if NotBefore is later (see model.Target.BringBack).
// It ignores counters that are at most a second ahead, so a repeated call does no harm. BringBack increments the
// version of a changed row, so that a lane that remembers the old row cannot swap it.
//
// Errors, for each counter alone: those of Fence.
func (w *Worker) BringBack(ctx context.Context, counters []Ahead) []Brought {
	all := make([]Brought, 0, len(counters))
	for some := range slices.Chunk(counters, fenceRows) {
		done, err := submit(w, w.bringing(some), func(tx *transaction) ([]Brought, error) { return tx.bringAllBack(some), nil }).result(ctx)
		if err != nil {
			done = slices.Repeat([]Brought{{Err: err}}, len(some))
		}
		all = append(all, done...)
	}
	return all
}

// bringing returns the operation of BringBack. The operation may be sent again if its outcome is unknown.
func (w *Worker) bringing(counters []Ahead) *Operation {
	ticket := queue.NewTicket(&w.Session)
	o := &Operation{Ticket: &ticket, repeatable: true}
	var keys []model.CounterKey
	for i := range counters {
		t := counters[i].Target
		keys = append(keys, t.Counters[0].Key) // the lock of the own row guards the rows of values
		if counters[i].Attribute != "" {
			keys = append(keys, t.Sibling(counters[i].Attribute))
		}
		o.targets = append(o.targets, t.Base())
	}
	o.lock(keys...)
	return o
}

func (tx *transaction) bringAllBack(counters []Ahead) []Brought {
	all := make([]Brought, len(counters))
	for i := range counters {
		all[i].Changed, all[i].Err = tx.bringBack(&counters[i])
	}
	return all
}

func (tx *transaction) bringBack(a *Ahead) (changed bool, err error) {
	t := a.Target.Base().Alone(a.Attribute)
	own, c := tx.counters[t.Counters[0].Key], tx.counters[t.Sibling(a.Attribute)]
	at := max(tx.now, a.NotBefore)
	switch {
	case own.held || c.held:
		return false, session.ErrBusy
	case !c.there || c.At-at <= model.MostAhead:
		return false, nil
	case c.Change > t.Change:
		return false, &model.StaleError{Change: c.Change}
	}
	if err := tx.check(t, c); err != nil {
		return false, err
	}
	t.Settle(0, &c.Row, c.At) // the buckets of removed limits are known to be ahead
	t.BringBack(a.Attribute, &c.Row, at)
	c.freed = true // the memory of refusals contains the previous state
	c.touch()
	return true, nil
}
