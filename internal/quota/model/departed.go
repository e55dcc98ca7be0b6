package model

import (
	"cmp"
	"slices"
)

// Departed buckets belong to limits that an edit of the plan, or another plan, removed. They are stored separately
// from the state, which swaps write, so plain hits do not pay for them. If the same limit returns, it finds its
// bucket.
//
// Stored are, one after the other, the instant of a departed bucket, µs, and the bucket as it was in the state.
// The raised thresholds of the bucket's limit follow in the same form.

// Stays is the instant until which a bucket stays if time does not replenish its units.
const Stays = forever

// mostDeparted is the maximum number of departed buckets of a counter. An exact log counts as one bucket for each
// blocksAlike blocks. Buckets that stay are kept beyond that number.
const (
	mostDeparted = 16
	blocksAlike  = 64
)

// until returns the instant at which a bucket as of m.at becomes equal to an untouched bucket, if nothing else is
// charged. The result is Stays if time does not replenish the units.
func (l *Limit) until(b bucket, m moment) int64 {
	if l.kept == inPeriod { // a cap's bucket never departs
		return 0
	}
	at := l.rules.resetAt(l, b, m)
	switch {
	case l.stays && b.level > 0:
		return Stays
	case l.refills && (l.refill == 0 || l.ends != 0) && b.level > 0: // another limit or override refills the bucket
		at = NoReset
	case l.Calendar && l.kept == inBucket && b.level > 0: // the customer's timezone may change
		at = m.at + longest(l, m.periods)
	}
	return min(at, Stays-1)
}

// append adds a bucket as of m.at to a state.
func (l *Limit) append(state []int64, b bucket, m moment) []int64 {
	return append(state, l.BucketID(m), b.level, b.aux, l.until(b, m))
}

// chunkEnd returns the end of the entry that begins at i: a bucket with its log, or raised thresholds.
func chunkEnd(state []int64, i int) int {
	if state[i] < 0 {
		return i + BucketLen + int(state[i+2])
	}
	return i + BucketLen
}

// departed is the bucket of a limit that no longer applies. It is stored apart from the buckets of the present
// limits.
type departed struct {
	since  int64
	chunk  []int64 // the bucket as it was in the state
	raised []int64 // the raised thresholds of its limit in the same form; nil: no thresholds are raised
}

func (d *departed) id() int64    { return d.chunk[0] }
func (d *departed) until() int64 { return d.chunk[3] }

// weight returns the number of buckets that the bucket counts as.
func (d *departed) weight() int64 {
	if d.id() < 0 && d.chunk[2] > 1 { // all integers except for the newest block's number
		return ceilDiv(d.chunk[2]-1, blocksAlike)
	}
	return 1
}

// readDeparted parses stored buckets. It stops at the first malformed bucket, and sound is then false.
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

// soundDeparted reports whether the Go model may have written the stored buckets.
func soundDeparted(limits []*Limit, stored []int64, m moment) bool {
	all, sound := readDeparted(stored)
	for _, d := range all {
		l := limitByID(limits, d.id(), m)
		sound = sound && d.since >= 0 && d.since < lastInstant && d.chunk[1] >= 0
		sound = sound && (l == nil || l.rules.sound(l, bucket{d.chunk[1], d.chunk[2]}, d.chunk[BucketLen:]))
	}
	return sound
}

// storeDeparted is the inverse of readDeparted, and returns nil if there are no buckets.
func storeDeparted(all []departed) (stored []int64) {
	for _, d := range all {
		stored = append(append(stored, d.since), d.chunk...)
		if d.raised != nil {
			stored = append(append(stored, d.since), d.raised...)
		}
	}
	return stored
}

// keep removes the buckets that no longer matter at an instant. While too many buckets remain, keep removes the
// bucket that would be empty soonest. It never removes buckets with the expiry Stays.
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

// Fits reports whether the state of the target's i-th counter has exactly the buckets of the target's limits. If
// so, no limit has been removed since the state was written, and no limit returns.
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

// Settle makes the row of the target's i-th counter fit the target at an instant, which is not before the row's
// instant. Buckets of removed limits are stored separately from then on, and buckets of limits that returned are
// in the state again. Settle drops departed buckets that are irrelevant by then. moved reports that a bucket left
// or returned, and changed reports that the row must be written. A row that was never charged stays unchanged. A
// level meter has no departed buckets, because its levels are its totals.
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
	if t.Clock != nil { // the clock may be set back to an instant at which departed buckets count
		at = min(at, r.At)
	}
	if all = keep(all, at); moved || len(all) != before {
		r.Departed, changed = storeDeparted(all), true
	}
	return moved, changed
}

// exchange returns a state that fits, and the departed buckets. moved reports whether a bucket left or returned.
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

// renew sets the instant until which a bucket of the instant since is relevant, at the present refill rate.
func (l *Limit) renew(chunk []int64, since int64, m moment) {
	if l.refills {
		chunk[3] = l.until(l.rules.stand(l, bucket{chunk[1], chunk[2]}, since, m), m)
	}
}

func find(all []departed, id int64) int {
	return slices.IndexFunc(all, func(d departed) bool { return d.id() == id })
}

// comeBack appends a departed bucket as of m.at. A bucket that is later than m.at is set back, because the row was
// ahead of the clock, see BringBack.
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

// Departed contains the units of a removed limit that time does not replenish and that belong to no open
// reservation.
type Departed struct{ ID, Units int64 }

// Unreserved returns the row's buckets of removed limits whose units can be refunded.
func (r *Row) Unreserved() (all []Departed) {
	apart, _ := readDeparted(r.Departed)
	for _, d := range apart {
		if units := d.chunk[1] - r.Holds.open(d.id(), 0); d.until() == Stays && units > 0 {
			all = append(all, Departed{d.id(), units})
		}
	}
	return all
}

// lower subtracts costs from the bucket of a removed limit in chunk, if the bucket stays. It never subtracts units
// of the remaining holds in beside. It returns the changed bucket, or nil if the bucket is empty.
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

// lowerDeparted returns the departed buckets without costs that were charged to them.
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

// Counts reports whether a row has relevant buckets at an instant for limits that the target's counter of an
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
