package quota

import (
	"cmp"
	"slices"
)

// What a charge leaves in a row, as quotad_step_v2 does it: for what is decided here, on
// rows that are locked, and for the tests of that function.

// chargeState charges one hit, on which limits with their buckets stand at m.at, and
// returns the state behind it and the bits of the shadows that were spared. The hit fits
// all hard limits. A concurrency limit has no bucket: holds are what it counts.
func chargeState(limits []*Limit, state []int64, since, cost int64, m moment) (next []int64, spared uint32) {
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
// of its limits, named by their identities then, at the instant charged. Going on from
// there a bucket comes to where it would be if it was given back later, so since need not
// be moved. A bucket that no limit has any more stays as it is.
func giveBackState(limits []*Limit, state []int64, since int64, charged []int64, at, cost int64, m moment) (next []int64) {
	m.at = since
	for i := 0; i+bucketLen <= len(state); {
		end := i + bucketLen
		if state[i] < 0 {
			end += int(state[i+2])
		}
		l := limitByID(limits, state[i], m)
		switch {
		case l == nil || !slices.Contains(charged, state[i]):
			next = append(next, state[i:end]...)
		case l.Algorithm == SlidingLog:
			log := state[i+bucketLen : end]
			var level int64
			blocks := l.logBlocks(log, since)
			for _, b := range blocks {
				level += b.units
			}
			level, blocks = l.giveBackLog(level, blocks, at, cost)
			next = l.encodeLog(next, level, blocks)
		default:
			// Stood, so that its parts are those of the limit as it is.
			b := l.rules.stand(l, bucket{state[i+1], state[i+2]}, since, m)
			b = l.rules.giveBack(l, b, at, cost, m)
			next = append(next, state[i], b.level, b.aux)
		}
		i = end
	}
	return next
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
