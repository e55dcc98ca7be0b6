package quota

import "quotad/internal/cache"

// memory keeps the last state seen of counters that refused a hit. Other hits can only have filled
// them further since, so a hit that the model refuses on such a state is refused rightly,
// without a statement. It never admits.
//
// What empties a counter (a raised limit, another plan) comes with a newer change number,
// and a state is only used for targets of the change number it was judged under; so a
// state that arrives late can undo no such change.
type memory struct {
	seen *cache.Cache[CounterKey, refusal]
}

// refusal is a counter's state, when it was read, and the change it was judged under.
type refusal struct {
	row
	asOf  int64
	under int64
}

func newMemory(size int) (*memory, error) {
	c, err := cache.New[CounterKey, refusal](size)
	if err != nil {
		return nil, err
	}
	return &memory{c}, nil
}

// refuse answers a hit that does not fit the remembered states of all its counters.
func (m *memory) refuse(t *Target, now, cost int64) (Decision, bool) {
	var space [2]row
	rows := space[:0]
	asOf := now
	for i := range t.Counters {
		known, ok := m.seen.Get(t.Counters[i].Key, now)
		if !ok || known.under != t.Change {
			return Decision{}, false
		}
		rows = append(rows, known.row)
		asOf = min(asOf, known.asOf)
	}
	d := judge(t, rows, t.Instant(now), cost)
	d.AsOf = t.Instant(asOf)
	return d, !d.Allowed
}

// forgetAfter is how long a state is kept at least, µs. It would be right for longer.
const forgetAfter = int64(3600e6)

// remember keeps the rows that refused a hit of the target, read at asOf. Rows that
// admitted are kept only where the counter is remembered already, so that what is said
// from memory takes this node's own charges into account. A newer state of the same
// counter stays; it goes when every limit has its whole quota back.
func (m *memory) remember(t *Target, rows []row, asOf int64, refused bool) {
	for i := range rows {
		r := refusal{row: rows[i], asOf: asOf, under: t.Change}
		m.seen.AddIf(t.Counters[i].Key, asOf, func(old refusal, ok bool) (refusal, int64, bool) {
			if !ok && !refused || ok && (old.under > r.under || old.under == r.under && old.version > r.version) {
				return old, 0, false
			}
			return r, keptUntil(t, t.Counters[i].Limits, &r), true
		})
	}
}

// keptUntil is when a remembered state can refuse nothing any more, or is of no use: when
// every limit has its whole quota back. A closed limit, or a cost above it, is refused for
// good, and a test clock says nothing of the time that the memory goes by.
func keptUntil(t *Target, limits []*Limit, r *refusal) int64 {
	expires := r.asOf + forgetAfter
	if t.Clock != nil {
		return expires
	}
	m := moment{at: max(r.asOf, r.at), periods: &t.Periods}
	for _, l := range limits {
		b, log := l.stand(r.state, r.at, m)
		m.log = log
		expires = max(expires, l.rules.resetAt(l, b, m))
	}
	return expires
}
