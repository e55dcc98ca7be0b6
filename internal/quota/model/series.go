package model

import "slices"

// Series is the costs of hits on one target, in order of arrival, and what became of the hits.
// The memory of a Series is used again.
type Series struct {
	Costs []int64 // of the hits, units

	// What Decide did.
	Admitted int   // hits
	Cost     int64 // of those
	Refused  bool  // one hit at least

	sums []int64
}

// Decide decides the hits at an instant as if they came one after the other. It calls tell with
// the decision of each. rows has one row for each counter of the target, as they are before the
// hits. Decide replaces them by the rows after the hits. The first row's new state may use buf's
// memory.
func (s *Series) Decide(t *Target, rows []Row, instant int64, buf []int64, tell func(hit int, d Decision)) {
	s.Admitted, s.Cost, s.Refused = 0, 0, false
	for from := 0; from < len(s.Costs); {
		n := s.admit(t, from, rows, instant, buf, tell)
		if n == 0 {
			n = s.refuse(t, from, rows, instant, tell)
		} else {
			buf = nil
		}
		from += n
	}
}

// admit charges the longest run of hits that the limits admit, from the hit from on, and returns
// the run's length. It tells each hit the buckets and versions right after that hit.
func (s *Series) admit(t *Target, from int, rows []Row, instant int64, buf []int64, tell func(hit int, d Decision)) (run int) {
	s.sums = s.sums[:0]
	sum := int64(0)
	for _, cost := range s.Costs[from:] {
		sum += cost
		s.sums = append(s.sums, sum)
	}
	if run = t.longestRun(rows, s.sums, instant); run == 0 {
		return 0
	}
	last := run - 1
	spared := t.Charge(rows, s.sums[last], instant, buf)
	for i := range rows {
		rows[i].Version += int64(run)
	}
	s.Admitted, s.Cost = s.Admitted+run, s.Cost+s.sums[last]
	after := Judge(t, rows, instant, 0)
	after.charged, after.spared = true, spared
	for i := range last {
		d := after
		d.Cost = s.Costs[from+i]
		d.buckets, d.versions = slices.Clone(after.buckets), slices.Clone(after.versions) // nil, mostly
		d.Shift(s.sums[i] - s.sums[last])
		d.version -= int64(last - i)
		for v := range d.versions {
			d.versions[v] -= int64(last - i)
		}
		tell(from+i, d)
	}
	after.Cost = s.Costs[from+last]
	tell(from+last, after)
	return run
}

// refuse refuses the hits, from one on, that do not fit, and returns how many.
func (s *Series) refuse(t *Target, from int, rows []Row, instant int64, tell func(hit int, d Decision)) (n int) {
	d := Judge(t, rows, instant, 0)
	d.Allowed = false
	costs := s.Costs[from:]
	for room := d.Room(); n < len(costs) && costs[n] > room; n++ {
		d.Cost = costs[n]
		tell(from+n, d)
	}
	if n == 0 {
		panic("quota: the model charges no hit and refuses none")
	}
	s.Refused = true
	return n
}

// Empty is the memory of s without hits.
func (s *Series) Empty() Series { return Series{Costs: s.Costs[:0], sums: s.sums[:0]} }
