package quota

import "maps"

// hit decides one hit on locked accounts.
func (b *books) hit(t *Target, cost int64, id ID) (Decision, error) {
	own := t.Counters[0].Key
	r, err := b.find(own.Customer, id)
	if err != nil {
		return Decision{}, err
	}
	if r != nil {
		return r.replay(t), nil
	}
	if t.Lost {
		return Decision{}, ErrLost
	}
	accounts, instant, err := b.open(t)
	if err != nil {
		return Decision{}, err
	}
	d := judge(t, rowsOf(accounts), instant, cost)
	if !d.Allowed || cost == 0 {
		return d, nil
	}
	d = b.charge(accounts, d)
	hour := b.book(t, accounts, cost, d.At)
	if id.given() {
		b.issue(t, id, receipt{at: d.At, cost: cost, receiptBody: receiptBody{hour: hour, charged: d.chargedBy(), views: d.views()}})
	}
	return d, nil
}

// views are what a decision says of all limits.
func (d *Decision) views() []View {
	views := make([]View, d.NumViews())
	for i := range views {
		views[i] = d.View(i)
	}
	return views
}

// hits decides hits as if they came one after the other, and charges all or none; together
// says which.
func (b *books) hits(hits []Hit) (results []Decision, together bool, err error) {
	before := b.before(hits)
	results, together = make([]Decision, len(hits)), true
	for i, h := range hits {
		if h.looks() {
			results[i], err = b.look(h.Target, h.Cost)
		} else {
			results[i], err = b.hit(h.Target, h.Cost, h.ID)
		}
		if err != nil {
			b.undo(before)
			return nil, false, err
		}
		together = together && (results[i].Allowed || h.looks())
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
func (b *books) look(t *Target, cost int64) (Decision, error) {
	accounts, instant, err := b.open(t)
	if err != nil {
		return Decision{}, err
	}
	return judge(t, rowsOf(accounts), instant, cost), nil
}

// undo is what hits may change.
type undo struct {
	accounts map[CounterKey]account
	usage    map[denialKey]int64
	closed   int
	receipts []receiptKey // that were not there
}

// before is what to go back to when hits are not charged after all. Nothing that it shares
// with the books is changed in place.
func (b *books) before(hits []Hit) undo {
	u := undo{accounts: make(map[CounterKey]account), usage: maps.Clone(b.usage), closed: len(b.closed)}
	for _, h := range hits {
		for i := range h.Target.Counters {
			if a := b.accounts[h.Target.Counters[i].Key]; a != nil {
				u.accounts[a.key] = *a
			}
		}
		key := receiptKey{h.Target.Counters[0].Key.Customer, h.ID.key}
		if h.ID.given() && b.receipts[key] == nil {
			u.receipts = append(u.receipts, key)
		}
	}
	return u
}

func (b *books) undo(u undo) {
	for key, a := range u.accounts {
		*b.accounts[key] = a
	}
	b.usage, b.closed = u.usage, b.closed[:u.closed]
	for _, key := range u.receipts {
		delete(b.receipts, key)
	}
}
