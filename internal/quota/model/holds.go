package model

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
)

// Hold is what an open reservation holds of one counter.
type Hold struct {
	Key     [16]byte // its receipt's
	Expires int64    // µs, by the customer's clock
	At      int64    // instant of the charge, µs
	Cost    int64
	Limits  []int64 // identities of the limits that were charged; few, and in no order
}

func (h *Hold) charges(id int64) bool { return slices.Contains(h.Limits, id) }

// The state of a counter with holds begins with the bucket of the identity heldMark, whose
// level is the instant at which the first of them expires. No statement of a lane charges
// such a counter (see Known.Held); the ledger does, which knows the holds.
const heldMark = int64(0)

// Unmarked is a stored state without its mark, and the instant of the mark; 0: none.
func Unmarked(stored []int64) (state []int64, due int64) {
	if len(stored) >= BucketLen && stored[0] == heldMark {
		return stored[BucketLen:], stored[1]
	}
	return stored, 0
}

// Marked is a state as it is stored beside these holds, which are sorted by expiry.
func Marked(state []int64, holds []Hold) []int64 {
	if len(holds) == 0 {
		return state
	}
	return append([]int64{heldMark, holds[0].Expires, 0}, state...)
}

// CompareHolds is the order of expiry.
func CompareHolds(a, b Hold) int {
	return cmp.Or(cmp.Compare(a.Expires, b.Expires), bytes.Compare(a.Key[:], b.Key[:]))
}

// Expire takes the holds that have expired at an instant off the row of the target's i-th counter.
// It gives their units back, and returns them.
func (t *Target) Expire(i int, r *Row, at int64) (over []Hold) {
	limits, m, n := t.Counters[i].Limits, t.moment(at), 0
	for n < len(r.Holds) && r.Holds[n].Expires <= m.at {
		h := &r.Holds[n]
		n++
		r.State = giveBackState(limits, r.State, r.At, h.Limits, h.At, h.Cost, r.Holds[n:], m)
	}
	over, r.Holds = r.Holds[:n], r.Holds[n:]
	return over
}

// course is how one limit goes on from a decision if nothing else happens but that time
// passes and holds expire.
type course struct {
	limit  *Limit
	id     int64
	bucket bucket
	m      moment // of the decision, with the log and the holds
}

// course is that of the i-th limit over all counters, from the decision's instant on.
func (d *Decision) course(i int) course {
	l, m := d.Target.LimitAt(i), d.moment(i)
	return course{l, l.BucketID(m), d.stands()[i], m}
}

// behind is the bucket after the first n holds have expired, and the moment of the last of them.
func (c *course) behind(n int) (bucket, moment) {
	l, b, m := c.limit, c.bucket, c.m
	over := m.holds[:n]
	if m.holds = m.holds[n:]; n > 0 {
		m.at = max(m.at, over[n-1].Expires)
	}
	if l.Algorithm == SlidingLog {
		m.log = l.logLessHolds(c.id, over, c.m)
	} else {
		for i := range over {
			if h := &over[i]; h.charges(c.id) {
				b = l.rules.giveBack(l, b, h.At, h.Cost, c.m)
			}
		}
	}
	return l.rules.stand(l, b, c.m.at, m), m
}

// until is the first instant at which something comes true on the course, say that a cost fits.
// For a bucket, at returns when that comes true if no more holds expire; NoReset: never. until
// looks for the fewest expired holds after which it comes true before the next hold expires.
//
// The search by halves is right because limits only recover: what comes in time after some holds
// comes in time after more of them.
func (c *course) until(at func(b bucket, m moment) int64) int64 {
	all := c.m.holds
	n := sort.Search(len(all), func(n int) bool {
		b, m := c.behind(n)
		return at(b, m) <= max(m.at, all[n].Expires)
	})
	return at(c.behind(n))
}

// heldUntil is until for a concurrency limit, of which only holds say anything: the first
// instant at which no more than so many units are in flight.
func (c *course) heldUntil(most int64) int64 {
	flying := c.bucket.level
	if flying <= most {
		return c.m.at
	}
	for i := range c.m.holds {
		if h := &c.m.holds[i]; h.charges(c.id) {
			if flying -= h.Cost; flying <= most {
				return h.Expires
			}
		}
	}
	return NoReset
}

// waitHeld is wait where holds may expire meanwhile.
func (d *Decision) waitHeld(i int) int64 {
	c := d.course(i)
	l, instant := c.limit, NoReset
	switch {
	case l.Algorithm == Concurrency && d.Cost > l.Limit:
	case l.Algorithm == Concurrency:
		instant = c.heldUntil(l.Limit - d.Cost)
	default:
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

// resetHeld is resetAt where holds may expire meanwhile.
func (d *Decision) resetHeld(i int) int64 {
	c := d.course(i)
	if c.limit.Algorithm == Concurrency {
		return c.heldUntil(0)
	}
	return c.until(func(b bucket, m moment) int64 { return c.limit.rules.resetAt(c.limit, b, m) })
}

// reserved is the units of a limit that open reservations hold and that count.
func (d *Decision) reserved(i int) (units int64) {
	l, b, m := d.Target.LimitAt(i), d.stands()[i], d.moment(i)
	for j := range m.holds {
		if h := &m.holds[j]; h.charges(l.BucketID(m)) && l.rules.counts(l, b, h.At, m) {
			units = min(units+h.Cost, softCap)
		}
	}
	return min(units, l.rules.used(l, b, m))
}

// Unreserved is what counts against the i-th limit over all counters and that no open
// reservation holds.
func (d *Decision) Unreserved(i int) int64 {
	l := d.Target.LimitAt(i)
	return l.rules.used(l, d.stands()[i], d.moment(i)) - d.reserved(i)
}
