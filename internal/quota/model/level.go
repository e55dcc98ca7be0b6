package model

import "slices"

// A level meter counts the present level of a resource: seats, projects, gigabytes. The totals of its counters are
// levels. The buckets of its limits follow from these totals, so they survive changes of plans, limits and names.
//
// The own counter's total is the meter's level. If limits are per attribute, the counter of a value has the
// value's level, and the counter of the empty value has the sum of all other values' levels. Therefore units that
// were held before a limit per attribute existed belong to the empty value. A level meter has only allocation
// limits, and at most one attribute that limits are per.
//
// The counters of values count only in the own counter's generation, and only an odd generation has values. A
// change of the level that is judged without the attribute ends the generation, and a change that is judged by
// another attribute begins another generation. Then all units belong to the empty value.

// IsLevel reports whether a meter is a level meter. The sign of its id indicates this in all keys, so readers of a
// counter need not look up the meter.
func IsLevel(meter int32) bool { return meter < 0 }

// Per returns the attribute that limits of a level meter's shared target are per. The result is empty if no limit
// is per attribute.
func (t *Target) Per() string {
	if !t.Level || len(t.per) == 0 {
		return ""
	}
	return t.per[0].Key.Attribute
}

// others returns the counter of the sum of all values except the empty value.
func (c Counter) others() Counter {
	return Counter{Key: CounterKey{c.Key.Customer, c.Key.Meter, AttributeKey(c.Key.Attribute, "")}}
}

// value reports whether the counters of a level meter's target include the counter of a value that is not empty.
func (t *Target) value() bool { return len(t.Counters) > 2 }

// Moves reports whether the total of the i-th counter changes with the target's level.
func (t *Target) Moves(i int) bool { return i == 0 || t.value() }

// Held returns the level that the target's hits change. The level belongs to the value if limits are per
// attribute, and otherwise to the meter. totals contains one total for each counter, see LevelTotals.
func (t *Target) Held(totals []int64) int64 { return t.heldIn(len(totals)-1, totals) }

// heldIn returns the level that the limits of the i-th counter are compared with.
func (t *Target) heldIn(i int, totals []int64) int64 {
	if i == 1 { // the counter of the empty value
		return totals[0] - totals[1]
	}
	return totals[i]
}

// LevelTotals returns the levels of the counters of a level meter's target, from their totals and generations.
// Values of another generation than the own counter's have level 0.
func LevelTotals(totals, generations []int64) []int64 {
	held := slices.Clone(totals)
	for i := range held {
		if generations[i] != generations[0] || i > 0 && generations[0]%2 == 0 {
			held[i] = 0
		}
	}
	return held
}

// NextGeneration returns the generation in which the level changes. generations contains the generations of the
// counters of the target that judges the change.
func NextGeneration(generations []int64) int64 {
	own := generations[0]
	odd := own%2 == 1
	switch valued := len(generations) > 1; {
	case !valued && !odd, valued && odd && generations[1] == own:
		return own
	case valued && odd: // the values belong to another attribute
		return own + 2
	}
	return own + 1
}

// Levels sets the states of the rows of a level meter's target to their levels. There is one row for each counter,
// and totals is the result of LevelTotals.
func (t *Target) Levels(rows []Row, totals []int64) {
	for i := range rows {
		limits := t.Counters[i].Limits
		state, m := make([]int64, 0, BucketLen*len(limits)), t.moment(rows[i].At)
		for _, l := range limits {
			held := bucket{t.heldIn(i, totals), 1}
			state = l.append(state, held, m)
			if l.notify != nil {
				state = l.carry(state, rows[i].State, rows[i].At, held, held, m)
			}
		}
		rows[i].State = state
	}
}
