package locked

import (
	"context"
	"errors"
	"maps"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// DecideTogether decides hits of any customers and meters as if they arrived one after the other. It charges all
// hits or no hit; together reports which. If no hit is charged, Allowed is false for all hits, even for a hit
// that would have been admitted.
//
// An error of one hit is the error of all hits.
func (w *Worker) DecideTogether(ctx context.Context, from queue.SenderID, hits []model.Hit) (results []model.Decision, together bool, err error) {
	o := w.newOperation(from, hits[0].Target, model.ID{})
	o.target, o.targets, o.repeatable = nil, nil, true
	for i := range hits {
		o.targets = append(o.targets, hits[i].Target.Base())
		o.lock(hits[i].Target.Keys()...)
		if !hits[i].Looks() {
			o.identify(hits[i].Target.Counters[0].Key.Customer, hits[i].ID)
		}
	}
	type outcome struct {
		results  []model.Decision
		together bool
	}
	done, err := submit(w, o, func(tx *transaction) (out outcome, err error) {
		out.results, out.together, err = tx.hits(hits)
		return out, err
	}).result(ctx)
	return done.results, done.together, err
}

// Once is a hit that waits in a worker.
type Once struct{ *pending[model.Decision] }

// Wait waits for the decision. If patient is false, it does not wait for a transaction beyond ctx.
func (o Once) Wait(ctx context.Context, patient bool) queue.Result {
	o.hasty = !patient
	d, err := o.result(ctx)
	return queue.Result{Decision: d, Err: err}
}

// Submit enqueues a sender's hit in its worker, and returns the waiting hit.
func (w *Worker) Submit(from queue.SenderID, h *model.Hit) Once {
	o := w.newOperation(from, h.Target, h.ID)
	return Once{submit(w, o, func(tx *transaction) (d model.Decision, err error) {
		d, err = tx.hit(h)
		o.refused = err == nil && !d.Allowed
		return d, err
	})}
}

// hit decides one hit on locked counters.
func (tx *transaction) hit(h *model.Hit) (model.Decision, error) {
	t, cost, id := h.Target, h.Cost, h.ID
	own := t.Counters[0].Key
	r, err := tx.find(own.Customer, id)
	if err != nil {
		return model.Decision{}, err
	}
	if r != nil && r.returned >= r.cost {
		return model.Decision{}, ErrRefunded
	}
	if r != nil {
		return r.replay(t), nil
	}
	if t.Lost {
		return model.Decision{}, ErrLost
	}
	if t.Level && h.Overrun {
		return model.Decision{}, ErrLevel
	}
	counters, _, err := tx.admit(t)
	if err != nil {
		return model.Decision{}, err
	}
	d := tx.judge(t, counters, cost)
	if h.Overrun {
		d = d.Overrun()
	}
	if !d.Allowed {
		tx.refuse(&d)
	}
	if !d.Allowed || cost == 0 {
		return d, nil
	}
	d, hour, err := tx.chargeHit(counters, d)
	if err != nil {
		return model.Decision{}, err
	}
	if id.Given() {
		tx.issue(t, id, receipt{at: d.At, cost: cost, receiptBody: receiptBody{hour: hour, charged: d.ChargedBy(), views: d.Views()}})
	}
	return d, nil
}

// chargeHit charges an admitted decision, and returns the decision after the charge. hour is the hour in which its
// units are booked. Units of a level meter change the level and are not booked.
func (tx *transaction) chargeHit(counters []*lockedRow, d model.Decision) (_ model.Decision, hour int64, err error) {
	if d.Target.Level {
		err = tx.addLevel(d.Target, counters, d.Cost, d.At)
		return d.Charged(rowsOf(counters)), 0, err
	}
	if err = tx.makeValues(counters); err != nil {
		return d, 0, err
	}
	d = tx.Charge(counters, d)
	return d, tx.addUnits(d.Target, counters, d.Cost, d.At), nil
}

// hits decides hits as if they arrived one after the other, and charges all hits or no hit; together reports
// which.
func (tx *transaction) hits(hits []model.Hit) (results []model.Decision, together bool, err error) {
	saved := tx.snapshot(hits)
	results, together = make([]model.Decision, len(hits)), true
	for i, h := range hits {
		if h.Looks() {
			results[i], err = tx.look(h.Target, h.Cost)
		} else {
			results[i], err = tx.hit(&h)
		}
		if errors.Is(err, errMissingHour) { // all missing hours are read together
			for _, later := range hits[i+1:] {
				_, _, _ = tx.admit(later.Target)
			}
		}
		if err != nil {
			tx.restore(saved)
			for _, h := range hits { // so that all targets whose overrides have ended are resolved again at once
				_ = h.Target.Over(h.Target.Instant(tx.now))
			}
			return nil, false, err
		}
		together = together && (results[i].Allowed || h.Looks())
	}
	if together {
		return results, true, nil
	}
	tx.restore(saved)
	for i := range results {
		if results[i].Allowed {
			// The hit would have been admitted, but its charge has been reverted.
			if results[i], err = tx.look(hits[i].Target, hits[i].Cost); err != nil {
				return nil, false, err
			}
			results[i].Allowed = false
		}
	}
	return results, false, nil
}

// look judges a hit and charges nothing.
func (tx *transaction) look(t *model.Target, cost int64) (model.Decision, error) {
	counters, _, err := tx.admit(t)
	if err != nil {
		return model.Decision{}, err
	}
	return tx.judge(t, counters, cost), nil
}

// snapshot contains the state that hits may change.
type snapshot struct {
	counters map[model.CounterKey]lockedRow
	usage    map[model.HourKey]int64
	levels   map[model.CounterKey]level
	closed   int
	made     map[int64]int
	receipts []receiptKey // the keys of receipts that did not exist
}

// snapshot copies the state that is restored if hits are not charged after all. The copy shares slices with the
// transaction, which never changes such a slice in place.
func (tx *transaction) snapshot(hits []model.Hit) snapshot {
	s := snapshot{
		counters: make(map[model.CounterKey]lockedRow), usage: maps.Clone(tx.usage), levels: maps.Clone(tx.levels), closed: len(tx.closed),
		made: maps.Clone(tx.made),
	}
	for _, h := range hits {
		for i := range h.Target.Counters {
			if c := tx.counters[h.Target.Counters[i].Key]; c != nil {
				s.counters[c.key] = *c
			}
		}
		for id := &h.ID; id != nil && id.Given(); id = id.Batch {
			if key := (receiptKey{h.Target.Counters[0].Key.Customer, id.Key}); tx.receipts[key] == nil {
				s.receipts = append(s.receipts, key)
			}
		}
	}
	return s
}

func (tx *transaction) restore(s snapshot) {
	for key, a := range s.counters {
		*tx.counters[key] = a
	}
	tx.usage, tx.levels, tx.closed, tx.made = s.usage, s.levels, tx.closed[:s.closed], s.made
	for _, key := range s.receipts {
		delete(tx.receipts, key)
	}
}

// SetLevel sets a level, 0 … MaxNumber. If the target has an attribute value, the level is that of the value;
// otherwise it is that of the meter. A rise is judged as a hit of the difference, and a fall is always allowed.
// The decision of a rise has the difference as its cost, and all other decisions have the cost 0.
//
// Errors: ErrNoLevel, *TooHighError, and those of Decide.
func (w *Worker) SetLevel(ctx context.Context, from queue.SenderID, t *model.Target, level int64) (model.Decision, error) {
	return submit(w, w.newOperation(from, t, model.ID{}), func(tx *transaction) (model.Decision, error) {
		return tx.setLevel(t, level)
	}).result(ctx)
}

func (tx *transaction) setLevel(t *model.Target, level int64) (model.Decision, error) {
	if !t.Level {
		return model.Decision{}, ErrNoLevel
	}
	counters, instant, err := tx.open(t)
	if err != nil {
		return model.Decision{}, err
	}
	if rise := level - t.Held(totalsOf(counters)); rise > 0 {
		return tx.hit(&model.Hit{Target: t, Cost: rise})
	}
	err = tx.makeLevel(t, counters, level, instant)
	return tx.judge(t, counters, 0), err
}
