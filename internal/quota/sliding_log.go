package quota

import "math"

// slidingLog: the units of each block of time, a precision long and counted from the Unix
// epoch. Block k counts until its last instant is a window old, so a hit is admitted when
// what counts + cost ≤ limit, and the limit is never exceeded in any window. The level is
// the units that count, aux the number of the newest block.
//
// Stored are level, the number of integers that follow, and those: the newest block, and
// for each block with units, from the oldest on, one integer (see quotad_log_stand_v1).
type slidingLog struct{}

// maxBlocks is the number of blocks in a window up to which a log may have any limit, and
// the limit up to which it may have any number of blocks: either bounds what is stored.
const maxBlocks = 1000

// logSpan is m of quotad_log_stand_v1, more than the blocks that can count at once, and
// logUnits its r, which bounds the units of one block.
func (l *Limit) logSpan() int64  { return ceilDiv(l.Window, l.Precision) + 2 }
func (l *Limit) logUnits() int64 { return math.MaxInt64 / l.logSpan() }

// oldestBlock is the first block that counts at an instant.
func (l *Limit) oldestBlock(at int64) int64 {
	if at < l.Window+l.Precision-1 {
		return 0
	}
	return (at-l.Window-l.Precision+1)/l.Precision + 1
}

// countsUntil is the first instant at which a block counts no more.
func (l *Limit) countsUntil(block int64) int64 {
	return block*l.Precision + l.Precision - 1 + l.Window
}

// blocks calls each with every block that counts at an instant, from the oldest on, and
// its units, until it returns false.
func (l *Limit) blocks(log []int64, at int64, each func(block, units int64) bool) {
	if len(log) == 0 {
		return
	}
	newest, span, oldest := log[0], l.logSpan(), l.oldestBlock(at)
	for _, stored := range log[1:] {
		age := newest%span - stored/l.logUnits()
		if age < 0 {
			age += span
		}
		if newest-age >= oldest && !each(newest-age, stored%l.logUnits()) {
			return
		}
	}
}

func (slidingLog) stand(l *Limit, _ bucket, _ int64, m moment) (b bucket) {
	if len(m.log) == 0 || m.log[0] < l.oldestBlock(m.at) {
		return bucket{}
	}
	b.aux = m.log[0]
	l.blocks(m.log, m.at, func(_, units int64) bool { b.level += units; return true })
	return b
}

func (slidingLog) room(l *Limit, b bucket, _ moment) int64 { return l.Limit - b.level }
func (slidingLog) used(_ *Limit, b bucket, _ moment) int64 { return b.level }

func (slidingLog) charge(l *Limit, b bucket, cost int64, m moment) bucket {
	return bucket{b.level + min(cost, l.logUnits()-1), m.at / l.Precision}
}

func (slidingLog) wait(l *Limit, b bucket, cost int64, m moment) int64 {
	if cost > l.Limit {
		return Never
	}
	until, over := m.at, b.level+cost-l.Limit
	l.blocks(m.log, m.at, func(block, units int64) bool {
		until, over = l.countsUntil(block), over-units
		return over > 0
	})
	return until - m.at
}

func (slidingLog) resetAt(l *Limit, b bucket, m moment) int64 {
	if b.level == 0 {
		return m.at
	}
	return l.countsUntil(b.aux)
}

// giveBack is never called: see logWithout.
func (slidingLog) giveBack(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }

// backdate is never called: see backdated.
func (slidingLog) backdate(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }

func (slidingLog) counts(l *Limit, _ bucket, charged int64, m moment) bool {
	return charged == present || charged/l.Precision >= l.oldestBlock(m.at)
}

// compileLog reads the precision and makes sure that the log stays small.
func (l *Limit) compileLog(s Spec, refuse func(field, format string, args ...any)) {
	l.Precision = 1
	if s.Precision != "" {
		var err error
		if l.Precision, err = ParseDuration(s.Precision); err != nil {
			refuse("precision", "%s", err)
			l.Precision = 1
			return
		}
	}
	switch {
	case l.Window == 0: // said already
	case l.Precision > l.Window:
		refuse("precision", "must not be longer than the window")
	case l.Limit > maxBlocks && ceilDiv(l.Window, l.Precision) > maxBlocks:
		refuse("precision", "a limit above %d needs a precision of %s or more, since a window may have %d of such blocks",
			maxBlocks, durationText(ceilDiv(l.Window, maxBlocks)), maxBlocks)
	}
}
