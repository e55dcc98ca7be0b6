package model

import (
	"fmt"
	"math"
	"slices"
)

// Never is the wait of a refusal that no wait ends.
const Never int64 = -1

// NoReset is the reset of a limit whose whole quota is never available again, such as an allocation in use. A very
// slow token bucket has this reset, too, if its reset is too late for 64 bits of µs.
const NoReset int64 = math.MaxInt64

// Decision is the result of a hit. View returns the result for each limit of the target.
type Decision struct {
	Target   *Target
	Allowed  bool
	Cost     int64
	At       int64 // the hit's one instant, µs
	Ahead    int64 // the time by which At is later than the customer's clock, µs, because a counter is ahead of the clock
	AsOf     int64 // for a refusal from memory, the instant of the read that it relies on, µs; else 0
	Replayed bool  // an earlier decision that is returned again for its id; nothing was charged now
	Degraded bool  // decided while the database was out of reach, and not charged; has no views if admitted

	// Versions and stands read the following fields. version and few suffice for most hits and need no memory of
	// their own.
	version  int64
	versions []int64 // one for each counter, if there are several
	few      [2]bucket
	buckets  []bucket // used instead of few if there are more limits

	logs    [][]int64 // for each limit, the blocks of its sliding log; nil if no limit has blocks
	holds   []*Holds  // for each counter; nil if there are no holds
	answer  []View    // for a replayed decision: the first response's view of each limit
	charged bool      // the buckets are in the state after the charge
	spared  uint32    // the bits of the shadow limits that would have refused and were not charged
}

// Versions returns the versions of the target's counters. The versions are those after the charge if the hit was
// admitted, and otherwise those of the state on which the hit was refused. The result is nil if nothing was
// judged.
func (d *Decision) Versions() []int64 {
	if d.versions != nil || d.Replayed || d.Degraded || d.Target == nil {
		return d.versions
	}
	return []int64{d.version}
}

// stands returns the buckets of all limits as of At. These are the buckets after the charge of an admitted hit,
// or the buckets that refused the hit.
func (d *Decision) stands() []bucket {
	if d.buckets != nil {
		return d.buckets
	}
	return d.few[:min(len(d.few), d.Target.NumLimits())]
}

// View describes the result of one limit; see the contract's "Per limit".
type View struct {
	Limit      *Limit
	Used       int64 // units
	Remaining  int64 // units
	Exceeded   bool  // the limit is exceeded, or a soft or shadow limit did not admit the hit
	RetryAfter int64 // µs, 0 if the hit was admitted or this limit alone would admit it, or Never
	ResetAt    int64 // µs since the epoch, or NoReset
	Reserved   int64 // the units of Used that open reservations hold
}

// NumViews returns the number of limits for which View returns a result.
func (d *Decision) NumViews() int {
	if d.Replayed {
		return len(d.answer)
	}
	return d.Target.NumLimits()
}

// View returns the decision's view of the plan's i-th limit, 0 ≤ i < NumViews().
func (d *Decision) View(i int) View {
	if d.Replayed {
		return d.answer[i]
	}
	i = d.Target.place(i)
	l, b, m := d.Target.LimitAt(i), d.stands()[i], d.moment(i)
	headroom := l.rules.headroom(l, b, m)
	v := View{Limit: l, Used: l.rules.used(l, b, m), Remaining: max(0, headroom)}
	if m.holds != nil {
		v.Reserved = min(v.Used, d.reserved(i))
	}
	v.ResetAt = d.resetAt(i)
	switch {
	case l.Mode == Hard: // exceeded after an overrun or after its limit was lowered
		v.Exceeded = headroom < 0
	case d.charged:
		v.Exceeded = headroom < 0 || d.spared&(1<<i) != 0
	default:
		v.Exceeded = d.Cost > headroom
	}
	if !d.Allowed && l.Mode != Soft {
		v.RetryAfter = d.Wait(i)
	}
	return v
}

// moment returns the moment of the i-th limit over all counters.
func (d *Decision) moment(i int) moment {
	m := d.Target.moment(d.At)
	if d.logs != nil {
		m.log = d.logs[i]
	}
	if d.holds != nil {
		m.holds = d.holds[d.Target.CounterOf(i)]
	}
	return m
}

// Wait returns the time after At until the i-th limit over all counters admits the cost, see Limit.wait. If the
// limit is an override that ends, or another plan follows, the wait ends there at the latest, because another
// limit counts then.
func (d *Decision) Wait(i int) (wait int64) {
	l, m := d.Target.LimitAt(i), d.moment(i)
	if m.holds == nil {
		wait = l.wait(d.stands()[i], d.Cost, m)
	} else {
		wait = d.waitHeld(i)
	}
	for _, ends := range [...]int64{l.ends, d.Target.ending.planTo} {
		if left := ends - d.At; left > 0 && (wait == Never || wait > left) {
			wait = left
		}
	}
	return wait
}

// resetAt returns the instant at which the whole quota of the i-th limit over all counters is available again. If
// another plan counts by then, its limits determine the instant. A limit that the other plan lacks ends at the
// change of plan.
func (d *Decision) resetAt(i int) (at int64) {
	l, m := d.Target.LimitAt(i), d.moment(i)
	if m.holds == nil {
		at = l.rules.resetAt(l, d.stands()[i], m)
	} else {
		at = d.resetHeld(i)
	}
	ending := &d.Target.ending
	if ending.planTo <= d.At || at <= ending.planTo || ending.next == nil {
		return at
	}
	same := slices.IndexFunc(*ending.next, func(next *Limit) bool { return next.ID == l.ID && next.Per == l.Per })
	switch {
	case same < 0:
		return ending.planTo
	case l.kept != inBucket: // its units are replenished in the same way, whatever the limit
		return at
	}
	next := (*ending.next)[same]
	then := func(b bucket, m moment) int64 {
		later := m
		later.at = max(m.at, ending.planTo)
		return next.rules.resetAt(next, next.rules.stand(next, b, m.at, later), later)
	}
	if m.holds == nil {
		return then(d.stands()[i], m)
	}
	c := d.course(i)
	c.limit = next
	return c.until(then)
}

// FromNow converts a wait that begins at At to a wait that begins at the customer's clock. Headers use it, because
// they contain no instant from which a client could count.
func (d *Decision) FromNow(wait int64) int64 {
	if wait <= 0 { // there is no wait, or the wait is Never
		return wait
	}
	return AddUpTo(wait, d.Ahead)
}

// Now returns the customer's clock at the time of the judgment, µs.
func (d *Decision) Now() int64 { return d.At - d.Ahead }

// RefusedBy reports whether the i-th limit over all counters refuses the cost. Only hard limits refuse.
func (d *Decision) RefusedBy(i int) bool {
	l := d.Target.LimitAt(i)
	return l.Mode == Hard && d.Cost > max(0, l.rules.headroom(l, d.stands()[i], d.moment(i)))
}

// OneVersion returns the version of the judged counter, or -1 if several counters were judged or the counter has
// holds.
func (d *Decision) OneVersion() int64 {
	if d.versions != nil || d.holds != nil {
		return -1
	}
	return d.version
}

// RetryAfter returns the largest wait of all hard limits after At in µs. The result is 0 if the hit was admitted,
// and Never if any wait is Never.
func (d *Decision) RetryAfter() int64 {
	if d.Allowed {
		return 0
	}
	var longest int64
	for i := range d.stands() {
		if d.Target.LimitAt(i).Mode != Hard {
			continue
		}
		w := d.Wait(i)
		if w == Never {
			return Never
		}
		longest = max(longest, w)
	}
	return longest
}

// Overrun admits the decision's cost, which has been spent already, regardless of hard limits. When the cost is
// charged, the hard limits are exceeded like soft limits, as far as 64 bits can count.
func (d Decision) Overrun() Decision {
	d.Allowed = true
	return d
}

// Headroom returns the largest cost that all hard limits would admit on these buckets, at least 0.
func (d *Decision) Headroom() int64 {
	headroom := int64(math.MaxInt64)
	for i, b := range d.stands() {
		if l := d.Target.LimitAt(i); l.Mode == Hard {
			headroom = min(headroom, l.rules.headroom(l, b, d.moment(i)))
		}
	}
	return max(0, headroom)
}

// Row is a counter's stored state as a statement returned it.
type Row struct {
	State    []int64
	Departed []int64 // buckets of removed limits, see Settle; nil: no such buckets, or they were not read
	At       int64   // the instant of the last charge
	Version  int64
	Change   int64
	Holds    *Holds // all holds; if there are any, State does not contain their mark
}

// Judge decides a hit at now on the rows (one for each counter of the target, in its order) with the Go model.
// Judge charges nothing, so the decision's buckets are in the state before the hit. The caller must have removed
// the expired holds (see Target.Expire).
func Judge(t *Target, rows []Row, now, cost int64) Decision {
	d := Decision{Target: t, Cost: cost, At: now, version: rows[0].Version}
	if len(rows) > 1 {
		d.versions = make([]int64, len(rows))
		for i := range rows {
			d.versions[i] = rows[i].Version
		}
	}
	if n := t.NumLimits(); n > len(d.few) {
		d.buckets = make([]bucket, n)
	}
	for i := range rows {
		d.At = max(d.At, rows[i].At)
	}
	d.Ahead = d.At - now
	stands, n := d.stands(), 0
	for i, r := range rows {
		m := t.moment(d.At)
		if m.holds = r.Holds; m.holds != nil {
			if d.holds == nil {
				d.holds = make([]*Holds, len(rows))
			}
			d.holds[i] = r.Holds
		}
		for _, l := range t.Counters[i].Limits {
			b, log := l.stand(r.State, r.At, m)
			if len(log) > 0 && d.logs == nil {
				d.logs = make([][]int64, t.NumLimits())
			}
			if len(log) > 0 {
				d.logs[n] = log
			}
			stands[n] = b
			n++
		}
	}
	d.Allowed = cost <= d.Headroom()
	return d
}

// WindowStart returns the start of the running window of the plan's i-th limit, µs, 0 ≤ i < NumViews(). runs is
// false if the limit's windows have no start, and if a window begins with a first hit and nothing was charged.
func (d *Decision) WindowStart(i int) (start int64, runs bool) {
	i = d.Target.place(i)
	l := d.Target.LimitAt(i)
	return l.rules.began(l, d.stands()[i], d.moment(i))
}

// Shift adds units to the decision's buckets, or subtracts them if units is negative. It leaves out the spared
// shadow limits. Shift turns the decision of a run's last hit into the decision of an earlier hit.
func (d *Decision) Shift(units int64) {
	stands := d.stands()
	for i := range stands {
		if l := d.Target.LimitAt(i); d.spared&(1<<i) == 0 {
			stands[i] = l.rules.charge(l, stands[i], units, d.moment(i))
		}
	}
}

// SameAs reports whether two decisions are equal except for the source of their state.
func (d *Decision) SameAs(other *Decision) bool {
	return d.Allowed == other.Allowed && d.Cost == other.Cost && d.At == other.At && d.Degraded == other.Degraded &&
		slices.Equal(d.stands(), other.stands()) && slices.Equal(d.Versions(), other.Versions()) && d.spared == other.spared
}

// String returns all fields of a decision, for logs and tests.
func (d *Decision) String() string {
	if d.Target == nil {
		return "{no decision}"
	}
	return fmt.Sprintf("{allowed %v cost %d at %d as of %d versions %v buckets %v logs %v spared %b}", d.Allowed, d.Cost, d.At, d.AsOf, d.Versions(),
		d.stands(), d.logs, d.spared)
}
