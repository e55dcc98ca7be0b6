package model

import (
	"slices"
	"sort"
)

// This file predicts the future of a limit while holds may expire.

// held contains the units that holds have in one of a limit's windows, as running sums. The units were charged at
// or after the instant from, and are returned to that window.
type held struct {
	from int64
	sums []int64
}

// units returns the units of the first n holds.
func (h held) units(n int) int64 {
	if h.sums == nil { // the previous window of a limit that counts only one window
		return 0
	}
	return h.sums[n]
}

// held returns the units of holds among the units that a bucket counts at a moment: in the running window, and in
// the previous window, which only a sliding window counts.
func (l *Limit) held(b bucket, m moment) (now, last held) {
	id, from := l.BucketID(m), l.rules.countsFrom(l, b, m)
	if l.twoWindows {
		start := windowStart(m.at, l.Window)
		last = held{from, m.holds.sumsOf(id, from, start)}
		from = start
	}
	return held{from, m.holds.sumsOf(id, from, forever)}, last
}

// reserved returns the units of a limit that open reservations hold and that have not been replenished.
func (d *Decision) reserved(i int) int64 {
	l, b, m := d.Target.LimitAt(i), d.stands()[i], d.moment(i)
	now, last := l.held(b, m)
	n := m.holds.Len()
	return min(AddUpTo(now.units(n), last.units(n)), softCap, l.taken(b, m))
}

// Unreserved returns the units of the i-th limit over all counters that were charged, have not been replenished,
// and belong to no open reservation. The result may exceed the limit's capacity.
func (d *Decision) Unreserved(i int) int64 {
	l := d.Target.LimitAt(i)
	return l.taken(d.stands()[i], d.moment(i)) - d.reserved(i)
}

// course predicts one limit after a decision if nothing happens except that time passes and holds expire.
type course struct {
	limit     *Limit
	bucket    bucket
	m         moment // the moment of the decision, with the log and the holds
	now, last held
}

// course returns the course of the i-th limit over all counters from the decision's instant on.
func (d *Decision) course(i int) course {
	c := course{limit: d.Target.LimitAt(i), bucket: d.stands()[i], m: d.moment(i)}
	c.now, c.last = c.limit.held(c.bucket, c.m)
	if c.limit.IsCap() {
		c.bucket.level = AddUpTo(c.bucket.level, c.now.units(c.m.holds.Len()))
	}
	return c
}

// afterExpiries returns the bucket after the first n holds have expired, and the moment at which the last of these
// holds expires.
func (c *course) afterExpiries(n int) (bucket, moment) {
	l, b, m := c.limit, c.bucket, c.m
	if n > 0 {
		m.at = max(m.at, m.holds.list[n-1].Expires)
		b = l.rules.giveBack(l, b, c.now.from, c.now.units(n), c.m)
		b = l.rules.giveBack(l, b, c.last.from, c.last.units(n), c.m)
	}
	return l.rules.stand(l, b, c.m.at, m), m
}

// until returns the first instant at which a condition becomes true on the course, such as that a cost fits. For a
// bucket, at returns the instant at which the condition becomes true if no more holds expire, or NoReset if it
// never does. until searches for the smallest number of expired holds after which the condition becomes true
// before the next hold expires.
//
// The binary search is correct because limits only recover. A condition that becomes true in time after some holds
// also becomes true in time after more holds.
func (c *course) until(at func(b bucket, m moment) int64) int64 {
	all := c.m.holds.list
	n := sort.Search(len(all), func(n int) bool {
		b, m := c.afterExpiries(n)
		return at(b, m) <= max(m.at, all[n].Expires)
	})
	return at(c.afterExpiries(n))
}

// heldUntil returns the first instant at which at most most units are in flight. It is the variant of until for a
// concurrency limit, which counts only holds, and for a cap, whose booked units are not returned.
func (c *course) heldUntil(most int64) int64 {
	all := c.m.holds.list
	switch n := sort.Search(len(all)+1, func(n int) bool { return c.bucket.level-c.now.units(n) <= most }); {
	case n == 0:
		return c.m.at
	case n > len(all):
		return NoReset
	default:
		return all[n-1].Expires
	}
}

// logUntil returns the first instant at which at most most ≥ 0 units count. It is the variant of until for a
// sliding log. It visits each hold and each block once, in the order in which their units stop counting. A search
// would not do, because the remaining units of a block depend on the log, which each charge changes.
func (c *course) logUntil(most int64) int64 {
	l, at, level := c.limit, c.m.at, int64(0)
	blocks, held := l.logBlocks(c.m.log, c.m.at), c.m.holds.blocksOf(l)
	left, of := make([]int64, len(held.blocks)), make([]int, len(blocks)) // of contains each block's index in held, or −1
	for i, b := range blocks {
		level += b.units
		if of[i] = held.place(b.block); of[i] >= 0 {
			left[of[i]] = b.units
		}
	}
	for n := 0; level > most; n++ {
		next := NoReset
		if n < len(held.of) {
			next = max(c.m.at, c.m.holds.list[n].Expires)
		}
		for ; level > most && len(blocks) > 0 && l.countsUntil(blocks[0].block) <= next; blocks, of = blocks[1:], of[1:] {
			gone := blocks[0].units
			if of[0] >= 0 {
				gone, left[of[0]] = left[of[0]], 0
			}
			at, level = l.countsUntil(blocks[0].block), level-gone
		}
		if level <= most {
			break
		}
		if place := held.of[n]; place >= 0 {
			gone := min(left[place], c.m.holds.list[n].Cost)
			at, level, left[place] = next, level-gone, left[place]-gone
		}
	}
	return at
}

// heldBlocks contains the blocks of a log in which holds were charged, in order, with the units of all holds in
// each block. of contains the index of each hold's block, or −1 if the hold was not charged to the log.
type heldBlocks struct {
	blocks []int64
	units  []int64
	of     []int32
}

// place returns the index of a block, or −1.
func (h *heldBlocks) place(block int64) int {
	if i := sort.Search(len(h.blocks), func(i int) bool { return h.blocks[i] >= block }); i < len(h.blocks) && h.blocks[i] == block {
		return i
	}
	return -1
}

// held returns the units of holds in a block.
func (h *heldBlocks) held(block int64) int64 {
	if i := h.place(block); i >= 0 {
		return h.units[i]
	}
	return 0
}

// blocksOf returns the blocks of a sliding log in which the holds were charged.
func (h *Holds) blocksOf(l *Limit) *heldBlocks {
	if h == nil {
		return &heldBlocks{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.logs[l.ID]; b != nil {
		return b
	}
	b, charged := &heldBlocks{of: make([]int32, len(h.list))}, chargedTo{id: l.ID}
	for i := range h.list {
		if charged.by(&h.list[i]) {
			b.blocks = append(b.blocks, h.list[i].At/l.Precision)
		}
	}
	slices.Sort(b.blocks)
	b.blocks = slices.Compact(b.blocks)
	b.units = make([]int64, len(b.blocks))
	for i := range h.list {
		if b.of[i] = -1; charged.by(&h.list[i]) {
			place := b.place(h.list[i].At / l.Precision)
			b.of[i], b.units[place] = int32(place), AddUpTo(b.units[place], h.list[i].Cost)
		}
	}
	if h.logs == nil {
		h.logs = make(map[int64]*heldBlocks)
	}
	h.logs[l.ID] = b
	return b
}

// waitHeld returns the wait of a limit when holds may expire in the meantime.
func (d *Decision) waitHeld(i int) int64 {
	c := d.course(i)
	l, instant := c.limit, NoReset
	switch l.kept {
	case inHolds, inPeriod:
		if d.Cost <= l.Limit {
			instant = c.heldUntil(l.Limit - d.Cost)
		}
	case inLog:
		if d.Cost <= max(0, l.rules.headroom(l, c.bucket, c.m)) {
			instant = c.m.at
		} else if d.Cost <= l.Limit {
			instant = c.logUntil(l.Limit - d.Cost)
		}
	case inBucket:
		instant = c.until(func(b bucket, m moment) int64 {
			if w := l.wait(b, d.Cost, m); w != Never {
				return m.at + min(w, NoReset-m.at)
			}
			return NoReset
		})
	}
	if instant == NoReset {
		return Never
	}
	return instant - d.At
}

// resetHeld returns the reset of a limit when holds may expire in the meantime.
func (d *Decision) resetHeld(i int) int64 {
	c := d.course(i)
	switch c.limit.kept {
	case inPeriod:
		return c.limit.rules.resetAt(c.limit, d.stands()[i], c.m)
	case inHolds:
		return c.heldUntil(0)
	case inLog:
		return c.logUntil(0)
	case inBucket:
	}
	return c.until(func(b bucket, m moment) int64 { return c.limit.rules.resetAt(c.limit, b, m) })
}
