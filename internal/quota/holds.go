package quota

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// hold is what an open reservation holds of one counter.
type hold struct {
	key     [16]byte // its receipt's
	expires int64    // µs, by the customer's clock
	at      int64    // instant of the charge, µs
	cost    int64
	limits  []int64 // identities of the limits charged; ascending nowhere, few
}

func (h *hold) charges(id int64) bool { return slices.Contains(h.limits, id) }

// The state of a counter with holds begins with the bucket of the identity heldMark, whose
// level is the instant at which the first of them expires. No statement of a lane charges
// such a counter (see runHeld); the ledger does, which knows the holds.
const heldMark = int64(0)

// unmarked is a stored state without its mark, and the instant of the mark; 0: none.
func unmarked(stored []int64) (state []int64, due int64) {
	if len(stored) >= bucketLen && stored[0] == heldMark {
		return stored[bucketLen:], stored[1]
	}
	return stored, 0
}

// marked is a state as it is stored beside these holds, which are sorted by expiry.
func marked(state []int64, holds []hold) []int64 {
	if len(holds) == 0 {
		return state
	}
	return append([]int64{heldMark, holds[0].expires, 0}, state...)
}

// compareHolds is the order of expiry.
func compareHolds(a, b hold) int {
	return cmp.Or(cmp.Compare(a.expires, b.expires), bytes.Compare(a.key[:], b.key[:]))
}

// expire gives back what holds of a row that are over at an instant have held.
func (r *row) expire(limits []*Limit, m moment) (over []hold) {
	n := 0
	for n < len(r.holds) && r.holds[n].expires <= m.at {
		h := &r.holds[n]
		r.state = giveBackState(limits, r.state, r.at, h.limits, h.at, h.cost, m)
		n++
	}
	over, r.holds = r.holds[:n], r.holds[n:]
	return over
}

// course is how one limit goes on from a decision if nothing else happens but that time
// passes and holds expire.
type course struct {
	limit *Limit
	state []int64 // of the limit alone
	since int64
	m     moment
}

// course is that of the i-th limit over all counters, from the decision's instant on.
func (d *Decision) course(i int) course {
	l, m := d.Target.limit(i), d.moment(i)
	c := course{limit: l, since: d.At, m: m}
	switch l.Algorithm {
	case Concurrency:
	case SlidingLog:
		c.state = append([]int64{l.ID, d.buckets[i].level, int64(len(m.log))}, m.log...)
	default:
		c.state = []int64{l.id(m), d.buckets[i].level, d.buckets[i].aux}
	}
	return c
}

func (c *course) bucket() bucket {
	b, log := c.limit.stand(c.state, c.since, c.m)
	c.m.log = log
	return b
}

// next goes on to the instant at which the next hold expires; false when there is none.
func (c *course) next() bool {
	if len(c.m.holds) == 0 {
		return false
	}
	h := &c.m.holds[0]
	c.state = giveBackState([]*Limit{c.limit}, c.state, c.since, h.limits, h.at, h.cost, c.m)
	c.m.at = max(c.m.at, h.expires)
	c.m.holds = c.m.holds[1:]
	return true
}

// until is the first instant that at returns for a bucket of the course that comes before
// another hold expires; at's is NoReset when it never comes.
func (c *course) until(at func(b bucket, m moment) int64) int64 {
	for {
		b := c.bucket()
		instant, expiry := at(b, c.m), int64(math.MaxInt64)
		if len(c.m.holds) > 0 {
			expiry = max(c.m.at, c.m.holds[0].expires)
		}
		if instant <= expiry || !c.next() {
			return instant
		}
	}
}

// waitHeld is wait where holds may expire meanwhile.
func (d *Decision) waitHeld(i int) int64 {
	c := d.course(i)
	instant := c.until(func(b bucket, m moment) int64 {
		if w := c.limit.wait(b, d.Cost, m); w != Never {
			return m.at + min(w, NoReset-m.at)
		}
		return NoReset
	})
	if instant == NoReset {
		return Never
	}
	return instant - d.At
}

// resetHeld is resetAt where holds may expire meanwhile.
func (d *Decision) resetHeld(i int) int64 {
	c := d.course(i)
	return c.until(func(b bucket, m moment) int64 { return c.limit.rules.resetAt(c.limit, b, m) })
}

// reserved is the units of a limit that open reservations hold and that count.
func (d *Decision) reserved(i int) (units int64) {
	l, b, m := d.Target.limit(i), d.buckets[i], d.moment(i)
	for j := range m.holds {
		if h := &m.holds[j]; h.charges(l.id(m)) && l.rules.counts(l, b, h.at, m) {
			units = min(units+h.cost, softCap)
		}
	}
	return min(units, l.rules.used(l, b, m))
}
