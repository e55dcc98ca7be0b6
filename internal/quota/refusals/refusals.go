package refusals

import (
	"slices"

	"quotad/internal/cache"
	"quotad/internal/quota/model"
)

// Memory keeps the last state of counters that refused a hit. Other hits can only have filled these counters
// further. Therefore Memory may refuse a hit without a statement. It never admits a hit.
//
// A higher limit or another plan empties a counter and has a newer change number. A state is used only for
// targets of its own history and change number, so a state that arrives late cannot undo such a change.
//
// Refunds and releases empty a counter, too, and have no change number. For meters with refunds or releases, a
// state is therefore used for at most a second. The same holds for counters with a cap, which adjustments move,
// and for counters that are ahead of the clock, which `quotad repair clock` sets back.
type Memory struct {
	Seen    *cache.Cache[model.CounterKey, refusal]
	returns func(meter int32) bool
}

// Memory of a refusal in bytes: the part beside its state, including the cache's memory for an entry, and the
// usual total for two limits. TestRefusalsWeigh measures both.
const (
	refusalWeight = 320
	usualWeight   = refusalWeight + 2*model.BucketLen*8
)

// returnsWithin is the time in µs for which a refusal is trusted if the units of its meter may be returned, or
// if its counter may be set back to the clock. Another node does not report returned units to this node, so this
// node may refuse them for that time.
const returnsWithin = int64(1e6)

// refusal is a counter's state with the instant of its read and the change under which it was judged.
type refusal struct {
	model.Row
	asOf    int64
	history uint64
	under   int64
}

// weigh returns the memory of a refusal in bytes.
func weigh(key model.CounterKey, r refusal) int {
	return refusalWeight + len(key.Attribute) + 8*len(r.State) + r.Holds.Weight()
}

// New returns a memory for size usual refusals.
func New(size int, returns func(meter int32) bool) (*Memory, error) {
	seen, err := cache.NewWeighed(size, usualWeight, weigh)
	return &Memory{Seen: seen, returns: returns}, err
}

// Forget removes a counter whose units were returned.
func (m *Memory) Forget(key model.CounterKey) { m.Seen.Remove(key) }

// Refuse refuses a hit that does not fit the remembered states of all its counters.
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
		// A state that was read while the clock was ahead is old, too.
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

// Last returns the last remembered state of a counter, whatever change it was judged under.
func (m *Memory) Last(key model.CounterKey, now int64) (model.Row, bool) {
	known, there := m.Seen.Get(key, now)
	return known.Row, there
}

// forgetAfter is the age, in µs, after which a remembered state may be dropped. The state is still valid then.
const forgetAfter = int64(3600e6)

// Remember keeps copies of the rows that refused a hit of the target, read at asOf. It keeps rows that admitted
// the hit only if their counter is remembered already, so that refusals from memory include this node's own
// charges. If a newer row of the same counter is remembered already, the newer row stays. A row is dropped when
// all limits of its counter are full again.
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

// newer reports whether the state was judged under a newer change or is a later state. All states of an earlier
// history are older.
func (r *refusal) newer(than *refusal) bool {
	if r.history != than.history {
		return r.history > than.history
	}
	return r.under > than.under || r.under == than.under && r.after(than)
}

// after reports whether the state is a later state of the same counter. A counter that was removed and created
// again (see Cleaner) starts at version 1 again, at a later instant.
func (r *refusal) after(other *refusal) bool { return r.Version > other.Version && r.At >= other.At }

// keptUntil returns the instant after which the memory may drop the state of a target's i-th counter: when every
// limit has its whole quota back, but not before forgetAfter. The minimum serves refusals that no wait ends,
// because a limit is closed or a cost exceeds the limit. On a test clock, keptUntil is forgetAfter alone,
// because a test clock is unrelated to the memory's time.
func keptUntil(t *model.Target, i int, r *refusal) int64 {
	expires := r.asOf + forgetAfter
	if t.Clock != nil {
		return expires
	}
	return max(expires, t.WholeAt(i, &r.Row, r.asOf))
}
