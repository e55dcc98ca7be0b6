package model

import (
	"cmp"
	"slices"
)

// Buckets of limits that left: a plan's edit, or another plan, took the limit out. They are kept apart from
// the state, which swaps write, so plain hits do not pay for them. A limit that comes back as it was finds its bucket.
//
// Apart are, one after the other, the instant that a bucket stands at, µs, and the bucket as it was in the
// state. What was raised of the bucket's limit follows it likewise.

// Stays is until when the bucket of a limit stays whose units do not come back by waiting.
const Stays = forever

// mostDeparted is how many buckets of limits that left a counter keeps. An exact log counts as one for each
// blocksAlike blocks. Buckets that stay are kept beyond that.
const (
	mostDeparted = 16
	blocksAlike  = 64
)

// until is when a bucket that stands at m.at says no more than an untouched one, if nothing else is
// charged; Stays of what does not come back by waiting.
func (l *Limit) until(b bucket, m moment) int64 {
	if l.kept == inPeriod { // it never is apart
		return 0
	}
	at := l.rules.resetAt(l, b, m)
	switch {
	case l.stays && b.level > 0:
		return Stays
	case l.refills && (l.refill == 0 || l.ends != 0) && b.level > 0: // another limit, or override, refills it
		at = NoReset
	case l.Calendar && l.kept == inBucket && b.level > 0: // the customer's timezone may change
		at = m.at + longest(l, m.periods)
	}
	return min(at, Stays-1)
}

// append adds a bucket that stands at m.at to a state.
func (l *Limit) append(state []int64, b bucket, m moment) []int64 {
	return append(state, l.BucketID(m), b.level, b.aux, l.until(b, m))
}

// chunkEnd is where the bucket that begins at i ends, with its log, or what was raised.
func chunkEnd(state []int64, i int) int {
	if state[i] < 0 {
		return i + BucketLen + int(state[i+2])
	}
	return i + BucketLen
}

// departed is a bucket that is kept apart.
type departed struct {
	since  int64
	chunk  []int64 // as it was in the state
	raised []int64 // likewise, what was raised of its limit; nil: nothing
}

func (d *departed) id() int64    { return d.chunk[0] }
func (d *departed) until() int64 { return d.chunk[3] }

// weight is how many buckets it counts as.
func (d *departed) weight() int64 {
	if d.id() < 0 && d.chunk[2] > 1 { // all but the newest block's number
		return ceilDiv(d.chunk[2]-1, blocksAlike)
	}
	return 1
}

// readDeparted takes apart what is stored. It stops where that is none; sound says that it is not.
func readDeparted(stored []int64) (all []departed, sound bool) {
	for i := 0; i < len(stored); {
		if i+1+BucketLen > len(stored) || stored[i+1] < 0 && (stored[i+3] < 0 || stored[i+3] > int64(len(stored))) {
			return all, false
		}
		end := chunkEnd(stored, i+1)
		if end > len(stored) {
			return all, false
		}
		switch last := len(all) - 1; {
		case stored[i+1] != raisedID:
			all = append(all, departed{since: stored[i], chunk: stored[i+1 : end : end]})
		case last < 0 || all[last].id() != stored[i+2] || stored[i+3] != raisedLen:
			return all, false
		default:
			all[last].raised = stored[i+1 : end : end]
		}
		i = end
	}
	return all, true
}

// soundDeparted reports whether what is stored is what the Go model may have written.
func soundDeparted(limits []*Limit, stored []int64, m moment) bool {
	all, sound := readDeparted(stored)
	for _, d := range all {
		l := limitByID(limits, d.id(), m)
		sound = sound && d.since >= 0 && d.since < lastInstant && d.chunk[1] >= 0
		sound = sound && (l == nil || l.rules.sound(l, bucket{d.chunk[1], d.chunk[2]}, d.chunk[BucketLen:]))
	}
	return sound
}

// storeDeparted is readDeparted the other way; nil without any.
func storeDeparted(all []departed) (stored []int64) {
	for _, d := range all {
		stored = append(append(stored, d.since), d.chunk...)
		if d.raised != nil {
			stored = append(append(stored, d.since), d.raised...)
		}
	}
	return stored
}

// keep leaves out the buckets that say nothing at an instant, and, while there are too many, that which
// would be empty soonest. None that stays is left out.
func keep(all []departed, at int64) []departed {
	all = slices.DeleteFunc(all, func(d departed) bool { return d.until() <= at })
	slices.SortStableFunc(all, func(a, b departed) int { return cmp.Compare(b.until(), a.until()) })
	sum := int64(0)
	for i := range all {
		sum += all[i].weight()
	}
	for last := len(all) - 1; last >= 0 && sum > mostDeparted && all[last].until() != Stays; last-- {
		sum, all = sum-all[last].weight(), all[:last]
	}
	return all
}

// Fits reports whether the state of the target's i-th counter has the buckets of the target's limits and no
// others. Then no bucket has left since it was written, and none comes back.
func (t *Target) Fits(i int, state []int64, at int64) bool {
	m, n := t.moment(at), 0
	limits := t.Counters[i].Limits
	next := func() {
		for n < len(limits) && limits[n].kept != inBucket && limits[n].kept != inLog {
			n++
		}
	}
	next()
	for i := 0; i+BucketLen <= len(state); i = chunkEnd(state, i) {
		switch id := state[i]; {
		case id == capID || id == raisedID:
		case n == len(limits) || limits[n].BucketID(m) != id:
			return false
		default:
			n++
			next()
		}
	}
	return n == len(limits)
}

// Settle has the row of the target's i-th counter fit the target at an instant, which is not before the row's.
// Buckets of limits that left are kept apart from then on, and those of limits that came back are in the
// state again. What is kept apart and says nothing by then goes. moved says that a bucket left or came back,
// and changed that anything is to be written. A row that never was charged stays as it is. A level meter
// keeps nothing apart: its levels are its totals.
func (t *Target) Settle(i int, r *Row, at int64) (moved, changed bool) {
	if t.Level || len(r.State) == 0 && len(r.Departed) == 0 {
		return false, false
	}
	all, _ := readDeparted(r.Departed)
	before := len(all)
	if fits := t.Fits(i, r.State, at); !fits || r.Change != t.Change {
		r.State, all, moved = t.exchange(i, r, all, at)
		changed = true
	}
	if t.Clock != nil { // it may be set back, to where what is apart counts
		at = min(at, r.At)
	}
	if all = keep(all, at); moved || len(all) != before {
		r.Departed, changed = storeDeparted(all), true
	}
	return moved, changed
}

// exchange returns a state that fits, and what is apart from it then; moved says whether a bucket left or
// came back.
func (t *Target) exchange(i int, r *Row, apart []departed, at int64) (next []int64, _ []departed, moved bool) {
	m, then := t.moment(at), t.moment(r.At)
	var there []departed
	for i := 0; i+BucketLen <= len(r.State); i = chunkEnd(r.State, i) {
		chunk := slices.Clone(r.State[i:chunkEnd(r.State, i)])
		switch {
		case chunk[0] == capID, chunk[0] == raisedID && chunk[1] == capID:
			next = append(next, chunk...)
		case chunk[0] != raisedID:
			there = append(there, departed{since: r.At, chunk: chunk})
		default:
			if of := find(there, chunk[1]); of >= 0 {
				there[of].raised = chunk
			}
		}
	}
	for _, l := range t.Counters[i].Limits {
		if l.kept != inBucket && l.kept != inLog {
			continue
		}
		id := l.BucketID(m)
		if n := find(there, id); n >= 0 {
			l.renew(there[n].chunk, r.At, m)
			next = append(append(next, there[n].chunk...), there[n].raised...)
			there = slices.Delete(there, n, n+1)
		} else if n = find(apart, id); n >= 0 {
			next = l.comeBack(next, &apart[n], then)
			apart, moved = slices.Delete(apart, n, n+1), true
		} else if l.kept == inLog {
			next = l.encodeLog(next, 0, nil)
		} else {
			next = l.append(next, l.rules.stand(l, bucket{}, r.At, then), then)
		}
	}
	return next, append(apart, there...), moved || len(there) > 0
}

// renew says until when a bucket of the instant since says anything, by what refills it now.
func (l *Limit) renew(chunk []int64, since int64, m moment) {
	if l.refills {
		chunk[3] = l.until(l.rules.stand(l, bucket{chunk[1], chunk[2]}, since, m), m)
	}
}

func find(all []departed, id int64) int {
	return slices.IndexFunc(all, func(d departed) bool { return d.id() == id })
}

// comeBack appends a bucket that was apart, as it stands at m.at. It is brought back where it is ahead: so
// the row was, see BringBack.
func (l *Limit) comeBack(next []int64, d *departed, m moment) []int64 {
	ahead := d.since > m.at
	m.log = d.chunk[BucketLen:]
	switch {
	case l.kept == inLog && ahead:
		return append(l.logBrought(next, m), d.raised...)
	case l.kept == inLog:
		return append(append(next, d.chunk...), d.raised...)
	}
	b := bucket{d.chunk[1], d.chunk[2]}
	if ahead {
		b = l.rules.bringBack(l, b, d.since, m)
	} else {
		b = l.rules.stand(l, b, d.since, m)
	}
	next = append(next, d.id(), b.level, b.aux, l.until(b, m))
	if l.notify != nil && d.raised != nil {
		r := l.arm(raisedIn(d.raised, d.id()), b, min(d.since, m.at), m)
		next = r.append(next, d.id())
	}
	return next
}

// Departed are the units of a limit that left, which do not come back by waiting and that no open
// reservation holds.
type Departed struct{ ID, Units int64 }

// Unreserved are the buckets of a row, of limits that left, of which units can be given back.
func (r *Row) Unreserved() (all []Departed) {
	apart, _ := readDeparted(r.Departed)
	for _, d := range apart {
		if units := d.chunk[1] - r.Holds.open(d.id(), 0); d.until() == Stays && units > 0 {
			all = append(all, Departed{d.id(), units})
		}
	}
	return all
}

// lower takes costs off the bucket of a limit that left, in chunk, if it stays; never what holds beside it
// hold. It returns the bucket's level.
func lower(chunk []int64, over []Hold, beside *Holds) []int64 {
	if chunk[3] != Stays {
		return chunk
	}
	level, charged := chunk[1], chargedTo{id: chunk[0]}
	for i := range over {
		if charged.by(&over[i]) {
			level -= min(level, over[i].Cost)
		}
	}
	level = max(level, min(chunk[1], beside.open(chunk[0], 0)))
	if level == 0 {
		return nil
	}
	return []int64{chunk[0], level, chunk[2], Stays}
}

// lowerDeparted is what is kept apart without costs that were charged to it.
func lowerDeparted(stored []int64, over []Hold, beside *Holds) []int64 {
	if len(stored) == 0 {
		return nil
	}
	all, _ := readDeparted(stored)
	for i := range all {
		all[i].chunk = lower(all[i].chunk, over, beside)
	}
	return storeDeparted(slices.DeleteFunc(all, func(d departed) bool { return d.chunk == nil }))
}

// Counts reports whether a row says anything at an instant of limits that the target's counter of an
// attribute does not have.
func (t *Target) Counts(limits []*Limit, r *Row, at int64) bool {
	apart, _ := readDeparted(r.Departed)
	if slices.ContainsFunc(apart, func(d departed) bool { return d.until() > at }) {
		return true
	}
	m := t.moment(at)
	for i := 0; i+BucketLen <= len(r.State); i = chunkEnd(r.State, i) {
		if id := r.State[i]; id != capID && id != raisedID && r.State[i+3] > at && limitByID(limits, id, m) == nil {
			return true
		}
	}
	return false
}
