package refusals

import (
	"slices"

	"quotad/internal/cache"
	"quotad/internal/quota/model"
)

// Memory keeps the last state seen of counters that refused a hit. Other hits can only have
// filled these counters further since. So Memory may refuse a hit without a statement. It never
// admits one.
//
// A raised limit or another plan empties a counter, and comes with a newer change number. A
// state is used only for targets of the history and change number that it was judged under. So a
// state that arrives late undoes no such change.
//
// Refunds and releases empty a counter too, and have no change number. On meters that have
// them, no state is used for longer than a second. Nor is one of a counter with a cap, which adjustments
// move. Nor is one of a counter that is ahead of the
// clock: `quotad repair clock` brings it back.
type Memory struct {
	Seen    *cache.Cache[model.CounterKey, refusal]
	returns func(meter int32) bool
}

// What a refusal takes of memory, bytes: without its state, with what the cache needs for an
// entry; and usually, of two limits. TestRefusalsWeigh measures it.
const (
	refusalWeight = 320
	usualWeight   = refusalWeight + 2*model.BucketLen*8
)

// returnsWithin is how long, µs, a refusal is believed on a meter whose units may come back, or of
// a counter that may be brought back to the clock.
// Another node gives units back without telling this one. So this one may refuse them that long.
const returnsWithin = int64(1e6)

// refusal is a counter's state, when it was read, and the change it was judged under.
type refusal struct {
	model.Row
	asOf    int64
	history uint64
	under   int64
}

// weigh is what a refusal takes of memory, bytes.
func weigh(key model.CounterKey, r refusal) int {
	return refusalWeight + len(key.Attribute) + 8*len(r.State) + r.Holds.Weight()
}

// New is a memory that has room for size usual refusals.
func New(size int, returns func(meter int32) bool) (*Memory, error) {
	seen, err := cache.NewWeighed(size, usualWeight, weigh)
	return &Memory{Seen: seen, returns: returns}, err
}

// Forget takes a counter out whose units came back.
func (m *Memory) Forget(key model.CounterKey) { m.Seen.Remove(key) }

// Refuse answers a hit that does not fit the remembered states of all its counters.
func (m *Memory) Refuse(t *model.Target, now, cost int64) (model.Decision, bool) {
	var space [2]model.Row
	rows := space[:0]
	asOf, old := now, false
	for i := range t.Counters {
		known, ok := m.Seen.Get(t.Counters[i].Key, now)
		if !ok || known.under != t.Change || known.history != t.History {
			return model.Decision{}, false
		}
		if known.Holds != nil && known.Holds.Due() <= t.Instant(now) {
			return model.Decision{}, false
		}
		rows = append(rows, known.Row)
		asOf = min(asOf, known.asOf)
		// What was read when the clock was ahead is old, too.
		old = old || max(now-known.asOf, known.asOf-now) > returnsWithin
	}
	if old && (t.Capped() || m.returns(t.Counters[0].Key.Meter)) {
		return model.Decision{}, false
	}
	d := model.Judge(t, rows, t.Instant(now), cost)
	if old && d.Ahead > model.MostAhead {
		return model.Decision{}, false
	}
	if !d.Allowed && t.Notifies() {
		if raised, _ := t.Raise(&rows[0], d.At, d.RefusedOwn()); len(raised) > 0 {
			return model.Decision{}, false // the refusal reaches a threshold, which a worker writes
		}
	}
	d.AsOf = t.Instant(asOf)
	return d, !d.Allowed && t.Over(d.At) == nil && t.Barred(d.At) == nil
}

// Last is the last state of a counter that the memory has, whatever it was judged under.
func (m *Memory) Last(key model.CounterKey, now int64) (model.Row, bool) {
	known, there := m.Seen.Get(key, now)
	return known.Row, there
}

// forgetAfter is how long a state is kept at least, µs. It would be right for longer.
const forgetAfter = int64(3600e6)

// Remember keeps copies of the rows that refused a hit of the target, read at asOf. Rows that
// admitted are kept only where the counter is remembered already, so that what is said
// from memory takes this node's own charges into account. A newer state of the same
// counter stays; it goes when every limit has its whole quota back.
func (m *Memory) Remember(t *model.Target, rows []model.Row, asOf int64, refused bool) {
	for i := range rows {
		key, r := t.Counters[i].Key, refusal{Row: rows[i], asOf: asOf, history: t.History, under: t.Change}
		m.Seen.AddIf(key, asOf, func(old refusal, ok bool) (refusal, int64, bool) {
			if !ok && !refused || ok && old.newer(&r) {
				return old, 0, false
			}
			r.State, r.Departed = slices.Clone(r.State), nil
			return r, keptUntil(t, i, &r), true
		})
	}
}

// newer reports whether the state was judged under a newer change, or is a later one. All states of
// an earlier history are older.
func (r *refusal) newer(than *refusal) bool {
	if r.history != than.history {
		return r.history > than.history
	}
	return r.under > than.under || r.under == than.under && r.after(than)
}

// after reports whether the state is a later one of the same counter. A counter that was
// removed and came back (see Cleaner) begins at version 1 again, at a later instant.
func (r *refusal) after(other *refusal) bool { return r.Version > other.Version && r.At >= other.At }

// keptUntil is when the memory may drop the state of a target's i-th counter: when every limit
// has its whole quota back, and at the earliest after forgetAfter. The minimum is for refusals
// that no wait lifts: by a closed limit, or of a cost above the limit. On a test clock it is
// forgetAfter alone, for a test clock says nothing of the time that the memory goes by.
func keptUntil(t *model.Target, i int, r *refusal) int64 {
	expires := r.asOf + forgetAfter
	if t.Clock != nil {
		return expires
	}
	return max(expires, t.WholeAt(i, &r.Row, r.asOf))
}
