package quota

import (
	"slices"
	"sync/atomic"

	"quotad/internal/cache"
)

// memory keeps the last state seen of counters that refused a hit. Other hits can only
// have filled them further since, so a hit that the model refuses on such a state is refused rightly,
// without a statement. It never admits.
//
// What empties a counter (a raised limit, another plan) comes with a newer change number,
// and a state is only used for targets of the change number it was judged under; so a
// state that arrives late can undo no such change. Refunds and releases have no such
// number: on the meters that have them no state is used for longer than a second.
type memory struct {
	seen *cache.Cache[CounterKey, refusal]
	// large are the states with long logs, of which there is room for few.
	large    *cache.Cache[CounterKey, refusal]
	anyLarge atomic.Bool // there ever was one: else nobody looks
	returns  func(meter int32) bool
}

// A state of more than largeState integers is a large one, and one of more than
// hugeState, more than two full logs, is not kept at all: its hits cost a statement. So
// what is kept of large ones takes no more than about half of what the others may.
const (
	largeState  = 64
	hugeState   = 2200
	largeShare  = 64 // one in this many
	fewestLarge = 16
)

// manyHolds is how many holds a counter may have and still be kept.
const manyHolds = 32

// returnsWithin is for how long, µs, a refusal on a meter whose units may come back is
// believed: other nodes give back without a word, and within this it is known everywhere.
const returnsWithin = int64(1e6)

// refusal is a counter's state, when it was read, and the change it was judged under.
type refusal struct {
	row
	asOf  int64
	under int64
}

func newMemory(size int, returns func(meter int32) bool) (*memory, error) {
	seen, err := cache.New[CounterKey, refusal](size)
	if err != nil {
		return nil, err
	}
	large, err := cache.New[CounterKey, refusal](max(size/largeShare, fewestLarge))
	if err != nil {
		return nil, err
	}
	return &memory{seen: seen, large: large, returns: returns}, nil
}

func (m *memory) get(key CounterKey, now int64) (refusal, bool) {
	known, ok := m.seen.Get(key, now)
	if !ok && m.anyLarge.Load() {
		known, ok = m.large.Get(key, now)
	}
	return known, ok
}

// forget takes a counter out whose units came back.
func (m *memory) forget(key CounterKey) {
	m.seen.Remove(key)
	if m.anyLarge.Load() {
		m.large.Remove(key)
	}
}

// refuse answers a hit that does not fit the remembered states of all its counters.
func (m *memory) refuse(t *Target, now, cost int64) (Decision, bool) {
	var space [2]row
	rows := space[:0]
	asOf := now
	for i := range t.Counters {
		known, ok := m.get(t.Counters[i].Key, now)
		if !ok || known.under != t.Change {
			return Decision{}, false
		}
		if len(known.holds) > 0 && known.holds[0].expires <= t.Instant(now) {
			return Decision{}, false
		}
		rows = append(rows, known.row)
		asOf = min(asOf, known.asOf)
	}
	if now-asOf > returnsWithin && m.returns(t.Counters[0].Key.Meter) {
		return Decision{}, false
	}
	d := judge(t, rows, t.Instant(now), cost)
	d.AsOf = t.Instant(asOf)
	return d, !d.Allowed
}

// forgetAfter is how long a state is kept at least, µs. It would be right for longer.
const forgetAfter = int64(3600e6)

// remember keeps copies of the rows that refused a hit of the target, read at asOf. Rows that
// admitted are kept only where the counter is remembered already, so that what is said
// from memory takes this node's own charges into account. A newer state of the same
// counter stays; it goes when every limit has its whole quota back.
func (m *memory) remember(t *Target, rows []row, asOf int64, refused bool) {
	for i := range rows {
		key, r := t.Counters[i].Key, refusal{row: rows[i], asOf: asOf, under: t.Change}
		if len(r.state) > hugeState || len(r.holds) > manyHolds {
			continue // an older one that is kept refuses no less rightly
		}
		into, from, moved := m.seen, m.large, false
		if len(r.state) > largeState {
			into, from = m.large, m.seen
			m.anyLarge.Store(true)
		}
		if m.anyLarge.Load() { // it may have been of the other size
			old, ok := from.Get(key, asOf)
			if ok && old.newer(&r) {
				continue
			}
			moved = ok && from.Remove(key)
		}
		into.AddIf(key, asOf, func(old refusal, ok bool) (refusal, int64, bool) {
			if !ok && !refused && !moved || ok && old.newer(&r) {
				return old, 0, false
			}
			r.state = slices.Clone(r.state)
			return r, keptUntil(t, t.Counters[i].Limits, &r), true
		})
	}
}

// newer reports whether the state was judged under a newer change, or is a later one.
func (r *refusal) newer(than *refusal) bool {
	return r.under > than.under || r.under == than.under && r.after(than)
}

// after reports whether the state is a later one of the same counter. A counter that was
// removed and came back (see Cleaner) begins at version 1 again, at a later instant.
func (r *refusal) after(other *refusal) bool { return r.version > other.version && r.at >= other.at }

// keptUntil is when a remembered state can refuse nothing any more, or is of no use: when
// every limit has its whole quota back. A closed limit, or a cost above it, is refused for
// good, and a test clock says nothing of the time that the memory goes by.
func keptUntil(t *Target, limits []*Limit, r *refusal) int64 {
	expires := r.asOf + forgetAfter
	if t.Clock != nil {
		return expires
	}
	m := t.moment(max(r.asOf, r.at))
	for _, l := range limits {
		b, log := l.stand(r.state, r.at, m)
		m.log = log
		expires = max(expires, l.rules.resetAt(l, b, m))
	}
	return expires
}
