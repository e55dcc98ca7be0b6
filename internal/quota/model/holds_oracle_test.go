package model

import (
	"cmp"
	"math"
	"slices"
)

// The oracle of what holds mean: each question looks at one hold after the other, as the words say
// it. It keeps no sums.

func (n *naiveHolds) counts(l *Limit, b bucket, charged int64, m moment) bool {
	switch {
	case l.Algorithm == TokenBucket:
		return b.level > 0
	case l.FirstHit:
		return b.level > 0 && charged >= b.aux
	case l.Algorithm == FixedWindow:
		start, _ := l.rules.(fixedWindow).window(l, m)
		return charged >= start
	case l.Algorithm == SlidingWindow:
		return charged >= windowStart(m.at, l.Window)-l.Window
	case l.Algorithm == SlidingLog:
		return charged == Present || charged/l.Precision >= l.oldestBlock(m.at)
	case l.Algorithm == Allocation, l.Algorithm == Concurrency:
		return true
	}
	panic("the oracle does not know " + l.Algorithm.String())
}

// naiveHolds are a row and the holds beside it, by expiry.
type naiveHolds struct {
	state []int64
	at    int64
	holds []Hold
}

func (n *naiveHolds) add(h Hold) {
	n.holds = append(n.holds, h)
	slices.SortFunc(n.holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Expires, b.Expires), slices.Compare(a.Key[:], b.Key[:]))
	})
}

// expire takes holds off one after the other. Those that are not over are beside each.
func (n *naiveHolds) expire(t *Target, at int64) {
	for len(n.holds) > 0 && n.holds[0].Expires <= at {
		h := n.holds[0]
		n.holds = n.holds[1:]
		n.giveBack(t, h.Limits, h.At, h.Cost)
	}
}

func (n *naiveHolds) settle(t *Target, key [16]byte, units int64) {
	i := slices.IndexFunc(n.holds, func(h Hold) bool { return h.Key == key })
	h := n.holds[i]
	if n.holds = slices.Delete(slices.Clone(n.holds), i, i+1); units > 0 {
		n.giveBack(t, h.Limits, h.At, units)
	}
}

func (n *naiveHolds) giveBack(t *Target, charged []int64, at, cost int64) {
	m, limits, next := t.moment(n.at), t.Counters[0].Limits, []int64(nil)
	for i := 0; i+BucketLen <= len(n.state); {
		end, id := i+BucketLen, n.state[i]
		if id < 0 {
			end += int(n.state[i+2])
		}
		m.log = n.state[i+BucketLen : end]
		switch l := limitByID(limits, id, m); {
		case !slices.Contains(charged, id):
			next = append(next, n.state[i:end]...)
		case l == nil:
		case l.Algorithm == SlidingLog:
			next = n.logWithout(l, next, at, cost, m)
		default:
			b := n.without(l, bucket{n.state[i+1], n.state[i+2]}, at, cost, m)
			next = l.append(next, b, m)
		}
		i = end
	}
	n.state = next
}

func (n *naiveHolds) without(l *Limit, b bucket, at, cost int64, m moment) bucket {
	after := l.rules.giveBack(l, b, at, cost, m)
	if len(n.holds) == 0 || l.Algorithm == TokenBucket {
		return after
	}
	id, held, last := l.BucketID(m), int64(0), int64(0)
	for _, h := range n.holds {
		switch {
		case !slices.Contains(h.Limits, id) || !n.counts(l, b, h.At, m):
		case l.Algorithm == SlidingWindow && h.At < windowStart(m.at, l.Window):
			last = AddUpTo(last, h.Cost)
		default:
			held = AddUpTo(held, h.Cost)
		}
	}
	if l.Algorithm == SlidingWindow {
		if at == Present {
			less := min(cost, max(0, b.level-held))
			return bucket{b.level - less, b.aux - min(cost-less, max(0, b.aux-last))}
		}
		after.aux = max(after.aux, min(b.aux, last))
	}
	after.level = max(after.level, min(b.level, held))
	return after
}

func heldIn(l *Limit, holds []Hold) map[int64]int64 {
	held := make(map[int64]int64)
	for _, h := range holds {
		if slices.Contains(h.Limits, l.ID) {
			held[h.At/l.Precision] = AddUpTo(held[h.At/l.Precision], h.Cost)
		}
	}
	return held
}

func (n *naiveHolds) logWithout(l *Limit, dst []int64, at, cost int64, m moment) []int64 {
	blocks, held := l.logBlocks(m.log, m.at), heldIn(l, n.holds)
	for i := len(blocks) - 1; i >= 0 && cost > 0; i-- {
		b := &blocks[i]
		if at == Present || b.block == at/l.Precision {
			less := min(cost, max(0, b.units-held[b.block]))
			b.units, cost = b.units-less, cost-less
		}
	}
	return l.encodeBlocks(dst, blocks)
}

// naiveCourse is a limit's bucket at the instant of a decision, and how it goes on.
type naiveCourse struct {
	*naiveHolds
	l *Limit
	b bucket
	m moment
}

func (c *naiveCourse) charges(h *Hold) bool { return slices.Contains(h.Limits, c.l.BucketID(c.m)) }

// level is the level of a concurrency limit.
func (c *naiveCourse) level() (units int64) {
	for _, h := range c.holds {
		if h.Expires > c.m.at && c.charges(&h) {
			units = min(units+h.Cost, softCap)
		}
	}
	return units
}

func (c *naiveCourse) behind(n int) (bucket, moment) {
	l, b, m := c.l, c.b, c.m
	if n > 0 {
		m.at = max(m.at, c.holds[n-1].Expires)
	}
	if l.Algorithm == SlidingLog {
		blocks, held := l.logBlocks(m.log, c.m.at), heldIn(l, c.holds[:n])
		for i := range blocks {
			blocks[i].units -= min(blocks[i].units, held[blocks[i].block])
		}
		m.log = l.encodeBlocks(nil, blocks)[BucketLen:]
	} else {
		for _, h := range c.holds[:n] {
			if c.charges(&h) {
				b = l.rules.giveBack(l, b, h.At, h.Cost, c.m)
			}
		}
	}
	return l.rules.stand(l, b, c.m.at, m), m
}

func (c *naiveCourse) until(at func(b bucket, m moment) int64) int64 {
	for n, h := range c.holds {
		b, m := c.behind(n)
		if instant := at(b, m); instant <= max(m.at, h.Expires) {
			return instant
		}
	}
	return at(c.behind(len(c.holds)))
}

func (c *naiveCourse) heldUntil(most int64) int64 {
	flying := c.b.level
	if flying <= most {
		return c.m.at
	}
	for _, h := range c.holds {
		if c.charges(&h) {
			if flying -= h.Cost; flying <= most {
				return h.Expires
			}
		}
	}
	return NoReset
}

func (c *naiveCourse) reserved() (units int64) {
	for _, h := range c.holds {
		if c.charges(&h) && c.counts(c.l, c.b, h.At, c.m) {
			units = min(units+h.Cost, softCap)
		}
	}
	return min(units, c.l.rules.used(c.l, c.b, c.m))
}

func (c *naiveCourse) resetAt() int64 {
	if c.l.Algorithm == Concurrency {
		return c.heldUntil(0)
	}
	return c.until(func(b bucket, m moment) int64 { return c.l.rules.resetAt(c.l, b, m) })
}

func (c *naiveCourse) wait(cost int64) int64 {
	instant := NoReset
	switch {
	case c.l.Algorithm == Concurrency && cost > c.l.Limit:
	case c.l.Algorithm == Concurrency:
		instant = c.heldUntil(c.l.Limit - cost)
	default:
		instant = c.until(func(b bucket, m moment) int64 {
			if w := c.l.wait(b, cost, m); w != Never {
				return m.at + min(w, math.MaxInt64-m.at)
			}
			return NoReset
		})
	}
	if instant == NoReset {
		return Never
	}
	return instant - c.m.at
}
