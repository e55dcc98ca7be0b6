package quota

// This file is the rest of quotad_step_v2's twin, beside charge.go: what a group of hits
// leaves in a row.

// standing is the state as it stands at m.at, with nothing charged.
func standing(limits []*Limit, state []int64, since int64, m moment) (next []int64) {
	for _, l := range limits {
		b, log := l.stand(state, since, m)
		if l.Algorithm == SlidingLog {
			next = l.encodeLog(next, b.level, l.logBlocks(log, m.at))
			continue
		}
		next = append(next, l.id(m), b.level, b.aux)
	}
	return next
}

// runOf is what quotad_step_v2 makes of a group, hit by hit: each as if alone, until one
// does not fit, a shadow changes its verdict, or a soft limit cannot count it wholly.
func runOf(limits []*Limit, state []int64, since int64, sums []int64, m moment) (run int64, spared uint32, next []int64) {
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
		after, these := chargeState(nil, limits, next, m.at, cost, m)
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
		state, bits := chargeState(nil, t.Counters[i].Limits, rows[i].state, rows[i].at, cost, m)
		after[i] = row{state: state, at: d.At, version: rows[i].version + 1, change: max(rows[i].change, t.Change)}
		spared |= bits << t.firstLimit(i)
	}
	d = judge(t, after, d.At, cost)
	d.Allowed, d.charged, d.spared = true, true, spared
	return d, after
}

// loggedAt is a log's bucket behind a charge at an instant.
func (l *Limit) loggedAt(dst []int64, level int64, log []int64, at, cost int64) []int64 {
	level, blocks := l.chargeLog(level, l.logBlocks(log, at), at, cost)
	return l.encodeLog(dst, level, blocks)
}
