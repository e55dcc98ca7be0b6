package quota

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// What a charge leaves in a row: for swaps on rows as they are known, and for the ledger on
// rows that it has locked.

// chargeState charges one hit, on which limits with their buckets stand at m.at, and
// appends the state behind it to next, and returns that and the bits of the shadows that were
// spared. The hit fits all hard limits. A concurrency limit has no bucket: holds are what it counts.
func chargeState(next []int64, limits []*Limit, state []int64, since, cost int64, m moment) (_ []int64, spared uint32) {
	next = slices.Grow(next, max(len(state), bucketLen*len(limits)))
	for i, l := range limits {
		b, log := l.stand(state, since, m)
		m.log = log
		fits := cost <= l.rules.room(l, b, m)
		if l.Mode == Shadow && !fits {
			spared |= 1 << i
		}
		charged := fits || l.Mode != Shadow
		switch l.Algorithm {
		case Concurrency:
		case SlidingLog:
			blocks := l.logBlocks(log, m.at)
			if charged {
				b.level, blocks = l.chargeLog(b.level, blocks, m.at, cost)
			}
			next = l.encodeLog(next, b.level, blocks)
		default:
			if charged {
				b = l.rules.charge(l, b, cost, m)
			}
			next = append(next, l.id(m), b.level, b.aux)
		}
	}
	return next, spared
}

// longestRun is how many hits, of which sums are the running sums of the costs, fit all hard
// limits from the first on, such that each leaves what it leaves in the run: where a shadow's
// verdict changes, and where a soft limit can count no more, a run ends. The rows, one a
// counter, stand at the instant at or before it.
func (t *Target) longestRun(rows []row, sums []int64, at int64) int {
	run := len(sums)
	for i := range rows {
		m := t.moment(at)
		m.holds = rows[i].holds
		for _, l := range t.Counters[i].Limits {
			b, log := l.stand(rows[i].state, rows[i].at, m)
			m.log = log
			if run = min(run, l.run(b, sums, m)); run == 0 {
				return 0
			}
		}
	}
	return run
}

// charge charges a cost that fits to all rows, one a counter, at an instant, and returns the
// bits of the shadows, over all limits, that were spared. The first row's new state may take
// the memory of buf.
func (t *Target) charge(rows []row, cost, at int64, buf []int64) (spared uint32) {
	for i := range rows {
		m := t.moment(at)
		m.holds = rows[i].holds
		state, bits := chargeState(buf, t.Counters[i].Limits, rows[i].state, rows[i].at, cost, m)
		spared |= bits << t.firstLimit(i)
		rows[i].state, rows[i].at, buf = state, at, nil
	}
	return spared
}

// run is how many hits with these running sums the limit takes as one.
func (l *Limit) run(b bucket, sums []int64, m moment) int {
	if l.Mode == Soft {
		return max(1, sort.Search(len(sums), func(i int) bool { return !l.countable(b, m.log, m.at, sums[i]) }))
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

// logBlock is a block of a log, by its number, and its units.
type logBlock struct{ block, units int64 }

// logBlocks are those that count at an instant, the oldest first.
func (l *Limit) logBlocks(log []int64, at int64) (blocks []logBlock) {
	l.blocks(log, at, func(block, units int64) bool {
		blocks = append(blocks, logBlock{block, units})
		return true
	})
	return blocks
}

// chargeLog adds a cost to the block of an instant, as far as it can count.
func (l *Limit) chargeLog(level int64, blocks []logBlock, at, cost int64) (int64, []logBlock) {
	return l.chargeBlock(level, blocks, at/l.Precision, cost)
}

// chargeBlock is chargeLog for any block that counts.
func (l *Limit) chargeBlock(level int64, blocks []logBlock, block, cost int64) (int64, []logBlock) {
	if cost == 0 {
		return level, blocks
	}
	i, there := slices.BinarySearchFunc(blocks, block, func(b logBlock, block int64) int { return cmp.Compare(b.block, block) })
	if !there {
		blocks = slices.Insert(blocks, i, logBlock{block: block})
	}
	added := min(cost, l.logUnits()-1-blocks[i].units)
	blocks[i].units += added
	level += added
	if len(blocks) > maxBlocks+1 {
		both := min(blocks[0].units+blocks[1].units, l.logUnits()-1)
		level += both - blocks[0].units - blocks[1].units
		blocks[1].units = both
		blocks = blocks[1:]
	}
	return level, blocks
}

// encodeLog appends a log's bucket.
func (l *Limit) encodeLog(dst []int64, level int64, blocks []logBlock) []int64 {
	if len(blocks) == 0 {
		return append(dst, l.ID, 0, 0)
	}
	dst = append(dst, l.ID, level, int64(1+len(blocks)), blocks[len(blocks)-1].block)
	for _, b := range blocks {
		dst = append(dst, b.block%l.logSpan()*l.logUnits()+b.units)
	}
	return dst
}

// giveBackState returns the state of instant since without a cost that was charged to some
// of its limits, named by their identities then, at the instant charged; what the holds
// beside it were charged stays. Going on from there a bucket comes to where it would be if
// it was given back later, so since need not be moved. The bucket of a limit that the plan
// has no more goes, as it would with the next hit.
func giveBackState(limits []*Limit, state []int64, since int64, charged []int64, at, cost int64, beside []hold, m moment) (next []int64) {
	m.at = since
	for i := 0; i+bucketLen <= len(state); {
		end, id := i+bucketLen, state[i]
		if id < 0 {
			end += int(state[i+2])
		}
		m.log = state[i+bucketLen : end]
		switch l := limitByID(limits, id, m); {
		case !slices.Contains(charged, id):
			next = append(next, state[i:end]...)
		case l == nil:
		case l.Algorithm == SlidingLog:
			next = l.logWithout(next, at, cost, beside, m)
		default:
			b := l.without(bucket{state[i+1], state[i+2]}, at, cost, beside, m)
			next = append(next, id, b.level, b.aux)
		}
		i = end
	}
	return next
}

// without is a bucket that stands at m.at without a cost that was charged at an instant, but
// with all that the holds beside it were charged. A token bucket does not know whose tokens
// came back by time, and what was taken and not given back is never more than it has issued.
func (l *Limit) without(b bucket, at, cost int64, beside []hold, m moment) bucket {
	after := l.rules.giveBack(l, b, at, cost, m)
	if len(beside) == 0 || l.Algorithm == TokenBucket {
		return after
	}
	id, held, last := l.id(m), int64(0), int64(0) // in the window that runs, and in the last
	for i := range beside {
		h := &beside[i]
		switch {
		case !h.charges(id) || !l.rules.counts(l, b, h.at, m):
		case l.Algorithm == SlidingWindow && h.at < windowStart(m.at, l.Window):
			last = addUpTo(last, h.cost)
		default:
			held = addUpTo(held, h.cost)
		}
	}
	if l.Algorithm == SlidingWindow {
		if at == present { // the newest first, but not what is held
			less := min(cost, max(0, b.level-held))
			return bucket{b.level - less, b.aux - min(cost-less, max(0, b.aux-last))}
		}
		after.aux = max(after.aux, min(b.aux, last))
	}
	after.level = max(after.level, min(b.level, held))
	return after
}

// logWithout appends the log in m.log without a cost, as without.
func (l *Limit) logWithout(dst []int64, at, cost int64, beside []hold, m moment) []int64 {
	blocks := l.logBlocks(m.log, m.at)
	held := l.heldBlocks(l.ID, beside)
	for i := len(blocks) - 1; i >= 0 && cost > 0; i-- {
		b := &blocks[i]
		if at == present || b.block == at/l.Precision {
			less := min(cost, max(0, b.units-held[b.block]))
			b.units, cost = b.units-less, cost-less
		}
	}
	return l.encodeBlocks(dst, blocks)
}

// logLessHolds is what is stored of the log in m.log without what holds were charged.
func (l *Limit) logLessHolds(id int64, holds []hold, m moment) []int64 {
	if len(holds) == 0 {
		return m.log
	}
	blocks := l.logBlocks(m.log, m.at)
	held := l.heldBlocks(id, holds)
	for i := range blocks {
		blocks[i].units -= min(blocks[i].units, held[blocks[i].block])
	}
	return l.encodeBlocks(nil, blocks)[bucketLen:]
}

// heldBlocks are the units that holds were charged in each block.
func (l *Limit) heldBlocks(id int64, holds []hold) map[int64]int64 {
	held := make(map[int64]int64)
	for i := range holds {
		if h := &holds[i]; h.charges(id) {
			held[h.at/l.Precision] += h.cost
		}
	}
	return held
}

// encodeBlocks is encodeLog of the blocks that have units.
func (l *Limit) encodeBlocks(dst []int64, blocks []logBlock) []int64 {
	blocks = slices.DeleteFunc(blocks, func(b logBlock) bool { return b.units == 0 })
	var level int64
	for _, b := range blocks {
		level += b.units
	}
	return l.encodeLog(dst, level, blocks)
}

func limitByID(limits []*Limit, id int64, m moment) *Limit {
	for _, l := range limits {
		if l.id(m) == id {
			return l
		}
	}
	return nil
}

// identities are those of limits at a moment, but for the shadows that were spared.
func identities(limits []*Limit, spared uint32, m moment) (ids []int64) {
	for i, l := range limits {
		if spared&(1<<i) == 0 {
			ids = append(ids, l.id(m))
		}
	}
	return ids
}
