package model

import "slices"

// A level meter counts what is held: seats, projects, gigabytes. The totals of its counters are
// levels. What a bucket of its limits says follows from them, and so stays through plans, limits and
// their names.
//
// The own counter's total is the meter's level. If limits are per an attribute, the counter of a
// value has the value's level, and the counter of the empty value has the sum of all other values'
// levels. What was held before there was a limit per the attribute is therefore the empty value's. A
// level meter has allocation limits only, and these are per one attribute at most.
//
// The counters of values count only in the own counter's generation. An odd generation has values. A
// change of the level that is judged without the attribute ends the generation, and a change that is
// judged by another attribute begins another one. All units are then the empty value's.

// IsLevel reports whether a meter counts what is held. The sign of its id says so, in all keys: who
// reads a counter need not ask what its meter is.
func IsLevel(meter int32) bool { return meter < 0 }

// Per is the attribute that limits of a level meter's shared target are per; empty: none is.
func (t *Target) Per() string {
	if !t.Level || len(t.per) == 0 {
		return ""
	}
	return t.per[0].Key.Attribute
}

// others is the counter of what all values but the empty one hold.
func (c Counter) others() Counter {
	return Counter{Key: CounterKey{c.Key.Customer, c.Key.Meter, AttributeKey(c.Key.Attribute, "")}}
}

// value reports whether the counters of a level meter's target have one of a value, that is not the
// empty one.
func (t *Target) value() bool { return len(t.Counters) > 2 }

// Moves reports whether the total of the i-th counter changes with the level that the target is of.
func (t *Target) Moves(i int) bool { return i == 0 || t.value() }

// Held returns the level that the target's hits change: of the value of the attribute that limits are
// per, else of the meter. totals has one for each counter, see LevelTotals.
func (t *Target) Held(totals []int64) int64 { return t.heldIn(len(totals)-1, totals) }

// heldIn returns the level that the limits of the i-th counter are held against.
func (t *Target) heldIn(i int, totals []int64) int64 {
	if i == 1 { // the empty value's
		return totals[0] - totals[1]
	}
	return totals[i]
}

// LevelTotals returns what the counters of a level meter's target hold, from their totals and their
// generations. Values of another generation than the own counter's hold nothing.
func LevelTotals(totals, generations []int64) []int64 {
	held := slices.Clone(totals)
	for i := range held {
		if generations[i] != generations[0] || i > 0 && generations[0]%2 == 0 {
			held[i] = 0
		}
	}
	return held
}

// NextGeneration returns the generation in which the level changes: generations are those of the
// counters of the target that the change is judged by.
func NextGeneration(generations []int64) int64 {
	own := generations[0]
	odd := own%2 == 1
	switch valued := len(generations) > 1; {
	case !valued && !odd, valued && odd && generations[1] == own:
		return own
	case valued && odd: // of another attribute
		return own + 2
	}
	return own + 1
}

// Levels has the rows of a level meter's target, one a counter, say what is held. totals are those
// of LevelTotals.
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
