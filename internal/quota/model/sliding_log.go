package model

import (
	"cmp"
	"math"
	"slices"
)

// slidingLog counts the units of each block of time. A block is a precision long and is counted from the Unix
// epoch. Block k counts until its last instant is a window old. A hit is admitted if the counted units + cost ≤
// limit, so the limit is never exceeded in any window. The level is the number of counted units, and aux is the
// number of the newest block.
//
// A stored log consists of the level, the number of integers after the bucket, the instant until which the newest
// block counts, and those integers. The integers are the number of the newest block and one integer for each block
// with units, from the oldest block on (see encodeLog).
type slidingLog struct{ counted }

var slidingLogDescriptor = descriptor{
	facts:  facts{kept: inLog},
	number: SlidingLog, name: "sliding_log", window: durationWindow, takes: []string{"precision"}, hours: spreadByHour, compared: true,
	compile: func(l *Limit, s *Spec, refuse refusal) rules {
		l.compileLog(s, refuse)
		return slidingLog{}
	},
	defaults: func(s *Spec) {
		if s.Precision == "" {
			s.Precision = "1us"
		}
	},
}

// maxBlocks bounds the stored data in two ways. A log with at most maxBlocks blocks in a window may have any
// limit, and a log with a limit of at most maxBlocks may have any number of blocks.
const maxBlocks = 1000

// logSpan exceeds the number of blocks that can count at once, so a stored block contains its number modulo
// logSpan. logUnits bounds the units of one block.
func (l *Limit) logSpan() int64  { return ceilDiv(l.Window, l.Precision) + 2 }
func (l *Limit) logUnits() int64 { return math.MaxInt64 / l.logSpan() }

// oldestBlock returns the first block that counts at an instant.
func (l *Limit) oldestBlock(at int64) int64 {
	if at < l.Window+l.Precision-1 {
		return 0
	}
	return (at-l.Window-l.Precision+1)/l.Precision + 1
}

// countsUntil returns the first instant at which a block no longer counts.
func (l *Limit) countsUntil(block int64) int64 {
	return block*l.Precision + l.Precision - 1 + l.Window
}

// blocks calls each with every block that counts at an instant and the units of the block, from the oldest block
// on, until each returns false.
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

// bringBack is never called, see logBrought.
func (slidingLog) bringBack(_ *Limit, stored bucket, _ int64, _ moment) bucket { return stored }

// giveBack is never called, see logWithout.
func (slidingLog) giveBack(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }

// backdate is never called, see backdated.
func (slidingLog) backdate(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }

func (slidingLog) countsFrom(l *Limit, _ bucket, m moment) int64 {
	return l.oldestBlock(m.at) * l.Precision
}

// countable returns the remaining units of the instant's block, because the block is full before the level is.
func (slidingLog) countable(l *Limit, _ bucket, m moment) int64 {
	most := l.logUnits() - 1
	l.blocks(m.log, m.at, func(block, units int64) bool {
		if block == m.at/l.Precision {
			most -= units
		}
		return true
	})
	return most
}

// mostIn assumes that a window begins with the time span, because windows may begin at any instant.
func (slidingLog) mostIn(l *Limit, time int64, _ bool) int64 { return l.inWindows(time, true) }

func (slidingLog) lifetime(l *Limit) int64 { return l.Window }

func (slidingLog) began(*Limit, bucket, moment) (int64, bool) { return 0, false }

// sound requires that each block is later than the block before, and that the newest block is the last.
func (slidingLog) sound(l *Limit, b bucket, log []int64) bool {
	if len(log) == 0 {
		return b.level == 0
	}
	if len(log) == 1 || log[0] < 0 || log[0] > lastInstant/l.Precision || b.level < 0 {
		return false
	}
	last := l.logSpan() // ages are below this number
	for _, stored := range log[1:] {
		age := log[0]%l.logSpan() - stored/l.logUnits()
		if age < 0 {
			age += l.logSpan()
		}
		if stored < 0 || stored/l.logUnits() >= l.logSpan() || age >= last {
			return false
		}
		last = age
	}
	return last == 0
}

// compileLog reads the precision and ensures that the log stays small.
func (l *Limit) compileLog(s *Spec, refuse refusal) {
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
	case l.Window == 0: // the error has been reported already
	case l.Precision > l.Window:
		refuse("precision", "must not be longer than the window")
	case l.Limit > maxBlocks && ceilDiv(l.Window, l.Precision) > maxBlocks:
		refuse("precision", "a limit above %d needs a precision of %s or more, since a window may have %d of such blocks",
			maxBlocks, durationText(ceilDiv(l.Window, maxBlocks)), maxBlocks)
	}
}

// logBlock is the number of a block of a log, and the block's units.
type logBlock struct{ block, units int64 }

// logBlocks returns the blocks that count at an instant, the oldest block first.
func (l *Limit) logBlocks(log []int64, at int64) (blocks []logBlock) {
	l.blocks(log, at, func(block, units int64) bool {
		blocks = append(blocks, logBlock{block, units})
		return true
	})
	return blocks
}

// chargeLog adds a cost to the block of an instant, as far as the block can count.
func (l *Limit) chargeLog(level int64, blocks []logBlock, at, cost int64) (int64, []logBlock) {
	return l.chargeBlock(level, blocks, at/l.Precision, cost)
}

// chargeBlock is chargeLog for any block that counts.
func (l *Limit) chargeBlock(level int64, blocks []logBlock, block, cost int64) (int64, []logBlock) {
	if cost == 0 {
		return level, blocks
	}
	i, there := slices.BinarySearchFunc(blocks, block, compareBlocks)
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

// encodeLog appends a log's bucket to dst.
func (l *Limit) encodeLog(dst []int64, level int64, blocks []logBlock) []int64 {
	if len(blocks) == 0 {
		return append(dst, l.ID, 0, 0, 0)
	}
	newest := blocks[len(blocks)-1].block
	dst = append(dst, l.ID, level, int64(1+len(blocks)), l.countsUntil(newest), newest)
	for _, b := range blocks {
		dst = append(dst, b.block%l.logSpan()*l.logUnits()+b.units)
	}
	return dst
}

// logWithout appends the log in m.log without costs that were charged to it. It is the variant of without for a
// log.
func (l *Limit) logWithout(dst []int64, over []Hold, beside *Holds, m moment) []int64 {
	blocks, held, charged := l.logBlocks(m.log, m.at), beside.blocksOf(l), chargedTo{id: l.ID}
	take := func(b *logBlock, cost int64) (less int64) {
		less = min(cost, max(0, b.units-held.held(b.block)))
		b.units -= less
		return less
	}
	for i := range over {
		h := &over[i]
		if !charged.by(h) {
			continue
		}
		if h.At != Present {
			if i, ok := slices.BinarySearchFunc(blocks, h.At/l.Precision, compareBlocks); ok {
				take(&blocks[i], h.Cost)
			}
			continue
		}
		for i, cost := len(blocks)-1, h.Cost; i >= 0 && cost > 0; i-- {
			cost -= take(&blocks[i], cost)
		}
	}
	return l.encodeBlocks(dst, blocks)
}

// logBrought appends the log in m.log as it must be stored at m.at. The units of later blocks move to the block of
// m.at.
func (l *Limit) logBrought(dst []int64, m moment) []int64 {
	present := m.at / l.Precision
	var blocks []logBlock
	var level int64
	for _, b := range l.logBlocks(m.log, m.at) {
		level, blocks = l.chargeBlock(level, blocks, min(b.block, present), b.units)
	}
	return l.encodeBlocks(dst, blocks)
}

func compareBlocks(b logBlock, block int64) int { return cmp.Compare(b.block, block) }

// encodeBlocks appends a log's bucket with the blocks that have units.
func (l *Limit) encodeBlocks(dst []int64, blocks []logBlock) []int64 {
	blocks = slices.DeleteFunc(blocks, func(b logBlock) bool { return b.units == 0 })
	var level int64
	for _, b := range blocks {
		level += b.units
	}
	return l.encodeLog(dst, level, blocks)
}
