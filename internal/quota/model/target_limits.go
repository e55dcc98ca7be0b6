package model

// NumLimits returns the number of limits over all counters.
func (t *Target) NumLimits() int {
	n := 0
	for i := range t.Counters {
		n += len(t.Counters[i].Limits)
	}
	return n
}

// Limit returns the plan's i-th limit, 0 ≤ i < NumLimits.
func (t *Target) Limit(i int) *Limit { return t.LimitAt(t.place(i)) }

// place returns the index of the plan's i-th limit over all counters.
func (t *Target) place(i int) int {
	if t.order == nil {
		return i
	}
	return t.order[i]
}

// firstLimit returns the index of a counter's first limit over all counters.
func (t *Target) firstLimit(counter int) (n int) {
	for c := range counter {
		n += len(t.Counters[c].Limits)
	}
	return n
}

// CounterOf returns the index of the counter that has the i-th limit over all counters.
func (t *Target) CounterOf(i int) int {
	for c := range t.Counters {
		if i -= len(t.Counters[c].Limits); i < 0 {
			return c
		}
	}
	panic("quota: limit index out of range")
}

// LimitAt returns the i-th limit over all counters, 0 ≤ i < NumLimits, in the order of a decision's buckets.
func (t *Target) LimitAt(i int) *Limit {
	for c := range t.Counters {
		if i < len(t.Counters[c].Limits) {
			return t.Counters[c].Limits[i]
		}
		i -= len(t.Counters[c].Limits)
	}
	panic("quota: limit index out of range")
}

// DenyOutage reports whether any limit requires that hits are refused while the database is out of reach (any deny
// wins). A shadow limit never refuses.
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
