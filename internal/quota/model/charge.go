package model

import (
	"slices"
	"sort"
)

// How a charge changes a row. A lane charges remembered rows by it, and a worker locked ones.

// chargeState charges a cost to the limits of one counter. state is the counter's state of the
// instant since, and the charge is at m.at. The cost fits all hard limits, or is an overrun.
//
// chargeState appends the new state to next, and returns next and the bits of the shadows that
// were spared. A shadow that would refuse the cost is spared: it is not charged. A concurrency
// limit has no bucket, for it counts holds.
func chargeState(next []int64, limits []*Limit, state []int64, since, cost int64, m moment) (_ []int64, spared uint32) {
	next = slices.Grow(next, max(len(state), BucketLen*len(limits)))
	for i, l := range limits {
		b, log := l.stand(state, since, m)
		m.log = log
		before := b
		fits := cost <= l.rules.headroom(l, b, m)
		if l.Mode == Shadow && !fits {
			spared |= 1 << i
		}
		charged := fits || l.Mode != Shadow
		switch l.kept {
		case inHolds:
		case inLog:
			blocks := l.logBlocks(log, m.at)
			if charged {
				b.level, blocks = l.chargeLog(b.level, blocks, m.at, cost)
			}
			next = l.encodeLog(next, b.level, blocks)
		case inPeriod:
			if l.countedIn(state) {
				b = l.rules.charge(l, b, cost, m)
				next = l.append(next, b, m)
			}
		case inBucket:
			if charged {
				b = l.rules.charge(l, b, cost, m)
			}
			next = l.append(next, b, m)
		}
		if l.notify != nil {
			next = l.carry(next, state, since, before, b, m)
		}
	}
	return next, spared
}

// longestRun is how many hits, from the first on, can be charged as one sum. sums are the running
// sums of the hits' costs. All hits of a run fit all hard limits. A run ends where a shadow changes
// its verdict, and where a soft limit can count no more. So the decision of each single hit can be
// computed from the state after the whole run.
//
// rows has one row for each counter, none later than the instant at.
func (t *Target) longestRun(rows []Row, sums []int64, at int64) int {
	run := len(sums)
	for i := range rows {
		m := t.moment(at)
		m.holds = rows[i].Holds
		for _, l := range t.Counters[i].Limits {
			b, log := l.stand(rows[i].State, rows[i].At, m)
			m.log = log
			if run = min(run, l.run(b, sums, m)); run == 0 {
				return 0
			}
		}
	}
	return run
}

// Charge charges a cost that fits to all rows, one a counter, at an instant, and returns the
// bits of the shadows, over all limits, that were spared. The first row's new state may take
// the memory of buf.
func (t *Target) Charge(rows []Row, cost, at int64, buf []int64) (spared uint32) {
	for i := range rows {
		m := t.moment(at)
		m.holds = rows[i].Holds
		state, bits := chargeState(buf, t.Counters[i].Limits, rows[i].State, rows[i].At, cost, m)
		spared |= bits << t.firstLimit(i)
		rows[i].State, rows[i].At, buf = state, at, nil
	}
	return spared
}

// run is how many hits with these running sums one limit lets be charged as one sum.
func (l *Limit) run(b bucket, sums []int64, m moment) int {
	if l.Mode == Soft {
		most := l.rules.countable(l, b, m)
		return max(1, sort.Search(len(sums), func(i int) bool { return sums[i] > most }))
	}
	headroom := l.rules.headroom(l, b, m)
	run := sort.Search(len(sums), func(i int) bool { return sums[i] > headroom })
	if run > 0 || l.Mode == Hard {
		return run
	}
	for run = 1; run < len(sums) && sums[run]-sums[run-1] > headroom; { // a shadow that refuses each
		run++
	}
	return run
}

// Identity is that of the bucket of the i-th limit over all counters, at an instant.
func (t *Target) Identity(i int, at int64) int64 { return t.LimitAt(i).BucketID(t.moment(at)) }

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

// Decide decides the hits at an instant as if they came one after the other. It calls report with
// the decision of each. rows has one row for each counter of the target, as they are before the
// hits. Decide replaces them by the rows after the hits. The first row's new state may use buf's
// memory.
func (s *Series) Decide(t *Target, rows []Row, instant int64, buf []int64, report func(hit int, d Decision)) {
	s.Admitted, s.Cost, s.Refused = 0, 0, false
	for from := 0; from < len(s.Costs); {
		n := s.admit(t, from, rows, instant, buf, report)
		if n == 0 {
			n = s.refuse(t, from, rows, instant, report)
		} else {
			buf = nil
		}
		from += n
	}
}

// admit charges the longest run of hits that the limits admit, from the hit from on, and returns
// the run's length. It reports to each hit the buckets and versions right after that hit.
func (s *Series) admit(t *Target, from int, rows []Row, instant int64, buf []int64, report func(hit int, d Decision)) (run int) {
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
		report(from+i, d)
	}
	after.Cost = s.Costs[from+last]
	report(from+last, after)
	return run
}

// refuse refuses the hits, from one on, that do not fit, and returns how many.
func (s *Series) refuse(t *Target, from int, rows []Row, instant int64, report func(hit int, d Decision)) (n int) {
	d := Judge(t, rows, instant, 0)
	d.Allowed = false
	costs := s.Costs[from:]
	for headroom := d.Headroom(); n < len(costs) && costs[n] > headroom; n++ {
		d.Cost = costs[n]
		report(from+n, d)
	}
	if n == 0 {
		panic("quota: the model charges no hit and refuses none")
	}
	s.Refused = true
	return n
}

// Empty is the memory of s without hits.
func (s *Series) Empty() Series { return Series{Costs: s.Costs[:0], sums: s.sums[:0]} }
