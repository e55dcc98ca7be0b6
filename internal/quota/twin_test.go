package quota

import "math"

// This file is the rest of quotad_step_v2's twin: what a charge leaves in a row. The rules
// know buckets; only the statements ever write what is stored of them.

// cost1 charges one hit, on which limits with their buckets stand at m.at, and returns the
// state behind it and which shadows were spared. The hit fits all hard limits.
func cost1(limits []*Limit, state []int64, since, cost int64, m moment) (next []int64, spared int64) {
	for i, l := range limits {
		b, log := l.stand(state, since, m)
		m.log = log
		shadow := l.Mode == Shadow && cost > l.rules.room(l, b, m)
		if shadow {
			spared |= 1 << i
		}
		if l.Algorithm == SlidingLog {
			next = l.appendLog(next, b.level, log, m.at, cost, !shadow)
			continue
		}
		if !shadow {
			b = l.rules.charge(l, b, cost, m)
		}
		next = append(next, l.id(m), b.level, b.aux)
	}
	return next, spared
}

// standing is the state as it stands at m.at, with nothing charged.
func standing(limits []*Limit, state []int64, since int64, m moment) (next []int64) {
	for _, l := range limits {
		b, log := l.stand(state, since, m)
		if l.Algorithm == SlidingLog {
			next = l.appendLog(next, b.level, log, m.at, 0, false)
			continue
		}
		next = append(next, l.id(m), b.level, b.aux)
	}
	return next
}

type logBlock struct{ block, units int64 }

// appendLog appends a log's bucket without what counts no more, and with a cost.
func (l *Limit) appendLog(dst []int64, level int64, log []int64, at, cost int64, charge bool) []int64 {
	var blocks []logBlock
	l.blocks(log, at, func(block, units int64) bool {
		blocks = append(blocks, logBlock{block, units})
		return true
	})
	if charge {
		now, last := at/l.Precision, len(blocks)-1
		if last < 0 || blocks[last].block != now {
			blocks = append(blocks, logBlock{block: now})
			last++
		}
		added := min(cost, l.logUnits()-1-blocks[last].units)
		blocks[last].units += added
		level += added
		if len(blocks) > maxBlocks+1 {
			both := min(blocks[0].units+blocks[1].units, l.logUnits()-1)
			level += both - blocks[0].units - blocks[1].units
			blocks[1].units = both
			blocks = blocks[1:]
		}
	}
	if len(blocks) == 0 {
		return append(dst, l.ID, 0, 0)
	}
	dst = append(dst, l.ID, level, int64(1+len(blocks)), blocks[len(blocks)-1].block)
	for _, b := range blocks {
		dst = append(dst, b.block%l.logSpan()*l.logUnits()+b.units)
	}
	return dst
}

// countable reports whether a soft limit can count a cost wholly.
func (l *Limit) countable(b bucket, log []int64, at, cost int64) bool {
	switch {
	case l.Mode != Soft:
		return true
	case l.Algorithm == TokenBucket:
		return cost <= (math.MaxInt64-b.level)/l.scale
	case l.Algorithm == SlidingLog:
		most := l.logUnits() - 1
		l.blocks(log, at, func(block, units int64) bool {
			if block == at/l.Precision {
				most -= units
			}
			return true
		})
		return cost <= most
	}
	return b.level+cost <= softCap
}

// run is what quotad_step_v2 makes of a group, hit by hit: each as if alone, until one
// does not fit, a shadow changes its verdict, or a soft limit cannot count it wholly.
func runOf(limits []*Limit, state []int64, since int64, sums []int64, m moment) (run, spared int64, next []int64) {
	next = standing(limits, state, since, m)
	for i, sum := range sums {
		cost := sum
		if i > 0 {
			cost -= sums[i-1]
		}
		for _, l := range limits {
			b, log := l.stand(next, m.at, m)
			m.log = log
			if l.Mode == Hard && cost > l.rules.room(l, b, m) || i > 0 && !l.countable(b, log, m.at, cost) {
				return run, spared, next
			}
		}
		after, these := cost1(limits, next, m.at, cost, m)
		if i > 0 && these != spared {
			return run, spared, next
		}
		run, spared, next = run+1, these, after
	}
	return run, spared, next
}

// decideOn is a decision on rows, charged: the rows behind it are returned too.
func decideOn(t *Target, rows []row, now, cost int64) (Decision, []row) {
	d := judge(t, rows, now, cost)
	if !d.Allowed {
		return d, rows
	}
	var spared uint32
	after := make([]row, len(rows))
	for i := range rows {
		m := t.moment(d.At)
		state, bits := cost1(t.Counters[i].Limits, rows[i].state, rows[i].at, cost, m)
		after[i] = row{state: state, at: d.At, version: rows[i].version + 1, change: max(rows[i].change, t.Change)}
		spared |= uint32(bits) << t.firstLimit(i)
	}
	d = judge(t, after, d.At, cost)
	d.Allowed, d.charged, d.spared = true, true, spared
	return d, after
}
