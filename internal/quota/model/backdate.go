package model

// Backdate charges a cost as of the instant at to the row of the target's i-th counter. It charges the cost as far
// as the cost still counts there, even if it does not fit. Afterwards the row's instant is the later of at and its
// previous instant.
func (t *Target) Backdate(i int, r *Row, at, cost int64) {
	m := t.moment(max(at, r.At))
	var next []int64
	for _, l := range t.Counters[i].Limits {
		next = append(next, l.backdated(r.State, r.At, at, cost, m)...)
	}
	r.State, r.At = next, m.at
}

// SetUsed sets the units that count against one limit of the target's i-th counter at an instant. The result is as
// if the limit was untouched and all units were charged at that instant.
func (t *Target) SetUsed(i, limit int, r *Row, used, instant int64) {
	m := t.moment(instant)
	var next []int64
	for n, l := range t.Counters[i].Limits {
		if n == limit {
			part := l.backdated(nil, 0, instant, used, m)
			next = l.carryOver(append(next, part...), r.State, r.At, bucket{part[1], part[2]}, m)
		} else {
			next = append(next, l.backdated(r.State, r.At, instant, 0, m)...)
		}
	}
	r.State, r.At = next, instant
}

// backdated returns the limit's part of a state at m.at after a charge. The cost is charged at an instant ≤ m.at,
// as far as the cost counts at m.at, even if it does not fit.
func (l *Limit) backdated(state []int64, since, at, cost int64, m moment) (next []int64) {
	b, log := l.stand(state, since, m)
	m.log = log
	before := b
	switch {
	case l.kept == inPeriod && !l.countedIn(state):
	case l.kept == inLog:
		blocks := l.logBlocks(log, m.at)
		if at/l.Precision >= l.oldestBlock(m.at) {
			b.level, blocks = l.chargeBlock(b.level, blocks, at/l.Precision, cost)
		}
		next = l.encodeLog(nil, b.level, blocks)
	default:
		b = l.rules.backdate(l, b, at, cost, m)
		next = l.append(nil, b, m)
	}
	if l.notify != nil {
		next = l.carry(next, state, since, before, b, m)
	}
	return next
}

// carryOver appends to next the raised thresholds of a limit whose bucket is replaced by another bucket. state is
// the state before the replacement.
func (l *Limit) carryOver(next, state []int64, since int64, to bucket, m moment) []int64 {
	if l.notify == nil {
		return next
	}
	before, log := l.stand(state, since, m)
	m.log = log
	r := l.arm(l.carried(state, since, before, before, m), to, m.at, m)
	return r.append(next, l.BucketID(m))
}
