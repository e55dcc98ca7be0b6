package model

import (
	"math"
	"slices"
	"sort"
)

// How a charge changes a row. A lane charges remembered rows by it, and a ledger locked ones.

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
		fits := cost <= l.rules.room(l, b, m)
		if l.Mode == Shadow && !fits {
			spared |= 1 << i
		}
		charged := fits || l.Mode != Shadow
		switch is := l.Algorithm.is(); {
		case is.onlyHolds:
		case is.log:
			blocks := l.logBlocks(log, m.at)
			if charged {
				b.level, blocks = l.chargeLog(b.level, blocks, m.at, cost)
			}
			next = l.encodeLog(next, b.level, blocks)
		default:
			if charged {
				b = l.rules.charge(l, b, cost, m)
			}
			next = append(next, l.BucketID(m), b.level, b.aux)
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
	room := l.rules.room(l, b, m)
	run := sort.Search(len(sums), func(i int) bool { return sums[i] > room })
	if run > 0 || l.Mode == Hard {
		return run
	}
	for run = 1; run < len(sums) && sums[run]-sums[run-1] > room; { // a shadow that refuses each
		run++
	}
	return run
}

// AddUpTo is a sum that stops where 64 bits do.
func AddUpTo(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Identity is that of the bucket of the i-th limit over all counters, at an instant.
func (t *Target) Identity(i int, at int64) int64 { return t.LimitAt(i).BucketID(t.moment(at)) }
