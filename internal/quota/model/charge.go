package model

import (
	"slices"
	"sort"
)

// This file computes how a charge changes a row. Lanes charge remembered rows with it, and workers charge locked
// rows.

// chargeState charges a cost to the limits of one counter. state is the counter's state of the instant since, and
// the charge is at m.at. The cost fits all hard limits, or is an overrun.
//
// chargeState appends the new state to next, and returns next and the bits of the spared shadow limits. A shadow
// limit is spared, which means not charged, if it would refuse the cost. A concurrency limit counts holds and
// therefore has no bucket.
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

// longestRun returns how many hits, from the first hit on, can be charged as one sum. sums are the running sums of
// the hits' costs. All hits of a run fit all hard limits. A run ends before a shadow limit changes its verdict or
// a soft limit can count no more. Therefore the decision of each hit can be computed from the state after the
// whole run.
//
// rows contains one row for each counter, and no row is later than the instant at.
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

// Charge charges a cost that fits to all rows at an instant. There is one row for each counter. Charge returns the
// bits of the spared shadow limits over all limits. The first row's new state may use the memory of buf.
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

// run returns how many hits with these running sums one limit allows to be charged as one sum.
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
	for run = 1; run < len(sums) && sums[run]-sums[run-1] > headroom; { // a shadow limit that refuses every hit
		run++
	}
	return run
}

// Identity returns the identity of the bucket of the i-th limit over all counters, at an instant.
func (t *Target) Identity(i int, at int64) int64 { return t.LimitAt(i).BucketID(t.moment(at)) }

// Series contains the costs of hits on one target, in order of arrival, and the results of the hits. The memory of
// a Series is reused.
type Series struct {
	Costs []int64 // the costs of the hits, units

	// The results of Decide.
	Admitted int   // the number of admitted hits
	Cost     int64 // the sum of the costs of the admitted hits
	Refused  bool  // at least one hit was refused

	sums []int64
}

// Decide decides the hits at an instant as if they arrived one after the other. It calls report with the decision
// of each hit. rows contains one row for each counter of the target, in the state before the hits. Decide replaces
// these rows by the rows after the hits. The first row's new state may use buf's memory.
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

// admit charges the longest run of hits that the limits admit, starting at the hit from, and returns the run's
// length. For each hit, it reports the buckets and versions directly after that hit.
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
		d.buckets, d.versions = slices.Clone(after.buckets), slices.Clone(after.versions) // usually nil
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

// refuse refuses the hits that do not fit, starting at the hit from, and returns their number.
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

// Empty returns the memory of s without hits.
func (s *Series) Empty() Series { return Series{Costs: s.Costs[:0], sums: s.sums[:0]} }
