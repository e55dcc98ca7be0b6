package model

// A level meter counts what is held: seats, projects, gigabytes. The totals of its counters are
// levels. What a bucket of its limits says follows from them, and so stays through plans, limits and
// their names.
//
// The own counter's total is the meter's level. Where limits are per an attribute, the counter of a
// value has that value's, and the counter of the empty value has what all others hold together: so
// what was held before there was a limit per the attribute is the empty value's. A level meter has
// allocation limits only, and these are per one attribute at most.

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

// Held is the level that the target's hits change: of the value of the attribute that limits are per,
// else of the meter. totals has one for each counter.
func (t *Target) Held(totals []int64) int64 { return t.heldIn(len(totals)-1, totals) }

// heldIn is the level that the limits of the i-th counter are held against. Where the meter's level
// fell while no limit was per the attribute, no value holds more than the meter.
func (t *Target) heldIn(i int, totals []int64) int64 {
	switch i {
	case 0:
		return totals[0]
	case 1: // the empty value's
		return max(0, totals[0]-totals[1])
	}
	return min(totals[0], totals[i])
}

// Levels has the rows of a level meter's target, one a counter, say what is held. totals are those of
// the counters.
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
