package model

// NumLimits is the number of limits over all counters.
func (t *Target) NumLimits() int {
	n := 0
	for i := range t.Counters {
		n += len(t.Counters[i].Limits)
	}
	return n
}

// Limit is the plan's i-th limit, 0 ≤ i < NumLimits.
func (t *Target) Limit(i int) *Limit { return t.LimitAt(t.place(i)) }

// place is where the plan's i-th limit is over all counters.
func (t *Target) place(i int) int {
	if t.order == nil {
		return i
	}
	return t.order[i]
}

// firstLimit is the index over all limits of the first one of a counter.
func (t *Target) firstLimit(counter int) (n int) {
	for c := range counter {
		n += len(t.Counters[c].Limits)
	}
	return n
}

// CounterOf is the counter of the i-th limit over all counters.
func (t *Target) CounterOf(i int) int {
	for c := range t.Counters {
		if i -= len(t.Counters[c].Limits); i < 0 {
			return c
		}
	}
	panic("quota: limit index out of range")
}

// LimitAt is the i-th limit over all counters, 0 ≤ i < NumLimits: the order of a
// decision's buckets.
func (t *Target) LimitAt(i int) *Limit {
	for c := range t.Counters {
		if i < len(t.Counters[c].Limits) {
			return t.Counters[c].Limits[i]
		}
		i -= len(t.Counters[c].Limits)
	}
	panic("quota: limit index out of range")
}

// DenyOutage reports whether any limit wants hits refused while the database is out of
// reach (any deny wins). A shadow never refuses.
func (t *Target) DenyOutage() bool {
	for c := range t.Counters {
		for _, l := range t.Counters[c].Limits {
			if l.DenyOutage && l.Mode != Shadow {
				return true
			}
		}
	}
	return false
}
