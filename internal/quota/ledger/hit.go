package ledger

import (
	"context"
	"maps"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// DecideTogether decides hits of any customers and meters as if they came one after the other. It
// charges all of them or none; together says which. If none is charged, Allowed is false for all
// hits, also for a hit that would have fitted.
//
// An error of one hit is the error of all.
func (l *Ledger) DecideTogether(ctx context.Context, from queue.SenderID, hits []model.Hit) (results []model.Decision, together bool, err error) {
	o := l.newOperation(from, hits[0].Target, model.ID{})
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
	done, err := submit(l, o, func(b *books) (out outcome, err error) {
		out.results, out.together, err = b.hits(hits)
		return out, err
	}).result(ctx)
	return done.results, done.together, err
}

// Once is a hit that waits in a ledger.
type Once struct{ *pending[model.Decision] }

// Wait waits for the decision.
func (o Once) Wait(ctx context.Context) queue.Result {
	d, err := o.result(ctx)
	return queue.Result{Decision: d, Err: err}
}

// Submit hands a sender's hit to its ledger and returns it to wait for.
func (l *Ledger) Submit(from queue.SenderID, h *model.Hit) Once {
	o := l.newOperation(from, h.Target, h.ID)
	return Once{submit(l, o, func(b *books) (d model.Decision, err error) {
		d, err = b.hit(h)
		o.refused = err == nil && !d.Allowed
		return d, err
	})}
}

// hit decides one hit on locked accounts.
func (b *books) hit(h *model.Hit) (model.Decision, error) {
	t, cost, id := h.Target, h.Cost, h.ID
	own := t.Counters[0].Key
	r, err := b.find(own.Customer, id)
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
	accounts, instant, err := b.open(t)
	if err != nil {
		return model.Decision{}, err
	}
	d := model.Judge(t, rowsOf(accounts), instant, cost)
	if h.Overrun {
		d = d.Overrun()
	}
	if !d.Allowed || cost == 0 {
		return d, nil
	}
	if err = b.makeValues(accounts); err != nil {
		return model.Decision{}, err
	}
	d = b.Charge(accounts, d)
	hour := b.book(t, accounts, cost, d.At)
	if id.Given() {
		b.issue(t, id, receipt{at: d.At, cost: cost, receiptBody: receiptBody{hour: hour, charged: d.ChargedBy(), views: d.Views()}})
	}
	return d, nil
}

// hits decides hits as if they came one after the other, and charges all or none; together
// says which.
func (b *books) hits(hits []model.Hit) (results []model.Decision, together bool, err error) {
	before := b.before(hits)
	results, together = make([]model.Decision, len(hits)), true
	for i, h := range hits {
		if h.Looks() {
			results[i], err = b.look(h.Target, h.Cost)
		} else {
			results[i], err = b.hit(&h)
		}
		if err != nil {
			b.undo(before)
			for _, h := range hits { // so that all whose overrides have ended are resolved again at once
				_ = h.Target.Over(h.Target.Instant(b.now))
			}
			return nil, false, err
		}
		together = together && (results[i].Allowed || h.Looks())
	}
	if together {
		return results, true, nil
	}
	b.undo(before)
	for i := range results {
		if results[i].Allowed {
			// It would have fitted; what it was charged is undone.
			if results[i], err = b.look(hits[i].Target, hits[i].Cost); err != nil {
				return nil, false, err
			}
			results[i].Allowed = false
		}
	}
	return results, false, nil
}

// look judges a hit and charges nothing.
func (b *books) look(t *model.Target, cost int64) (model.Decision, error) {
	accounts, instant, err := b.open(t)
	if err != nil {
		return model.Decision{}, err
	}
	return model.Judge(t, rowsOf(accounts), instant, cost), nil
}

// undo is what hits may change.
type undo struct {
	accounts map[model.CounterKey]account
	usage    map[model.HourKey]int64
	closed   int
	made     map[int64]int
	receipts []receiptKey // that were not there
}

// before copies the state to go back to when hits are not charged after all. The copy shares
// slices with the books, which never change such a slice in place.
func (b *books) before(hits []model.Hit) undo {
	u := undo{accounts: make(map[model.CounterKey]account), usage: maps.Clone(b.usage), closed: len(b.closed), made: maps.Clone(b.made)}
	for _, h := range hits {
		for i := range h.Target.Counters {
			if a := b.accounts[h.Target.Counters[i].Key]; a != nil {
				u.accounts[a.key] = *a
			}
		}
		key := receiptKey{h.Target.Counters[0].Key.Customer, h.ID.Key}
		if h.ID.Given() && b.receipts[key] == nil {
			u.receipts = append(u.receipts, key)
		}
	}
	return u
}

func (b *books) undo(u undo) {
	for key, a := range u.accounts {
		*b.accounts[key] = a
	}
	b.usage, b.closed, b.made = u.usage, b.closed[:u.closed], u.made
	for _, key := range u.receipts {
		delete(b.receipts, key)
	}
}
