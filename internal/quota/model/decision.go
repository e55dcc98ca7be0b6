package model

import (
	"fmt"
	"math"
	"slices"
)

// Never is the wait of a refusal that no wait will lift.
const Never int64 = -1

// NoReset is the reset of a limit whose whole quota never comes back, as of an allocation in use.
// A very slow token bucket has it, too: its reset is too late for 64 bits of µs.
const NoReset int64 = math.MaxInt64

// Decision is the outcome of a hit. What it says of each limit of its target is viewed
// by View.
type Decision struct {
	Target   *Target
	Allowed  bool
	Cost     int64
	At       int64 // the hit's one instant, µs
	Ahead    int64 // of At: how much later than the customer's clock showed, µs, since a counter is ahead of that
	AsOf     int64 // a refusal from memory: the instant its view was read, µs; else 0
	Replayed bool  // an earlier one, given again for its id; nothing was charged now
	Degraded bool  // decided while the database was out of reach, and not charged; let in, it has no views

	// Versions and stands read these. version and few are enough for most hits, and need no
	// memory of their own.
	version  int64
	versions []int64 // one a counter, where there are several
	few      [2]bucket
	buckets  []bucket // instead of few, where there are more limits

	logs    [][]int64 // of each limit, the blocks of its sliding log; nil without any
	holds   []*Holds  // of each counter; nil without any
	answer  []View    // of a replayed decision: what the first answer said of each limit
	charged bool      // the buckets are those after the charge
	spared  uint32    // the bits of the shadows that would have refused and were not charged
}

// Versions are the counters' versions, one a counter of the target: after the charge when
// admitted, else of the state the hit was refused on. Nil where nothing was judged.
func (d *Decision) Versions() []int64 {
	if d.versions != nil || d.Replayed || d.Degraded || d.Target == nil {
		return d.versions
	}
	return []int64{d.version}
}

// stands are the buckets, one a limit, as they stand at At: after the charge, or of the state
// the hit was refused on.
func (d *Decision) stands() []bucket {
	if d.buckets != nil {
		return d.buckets
	}
	return d.few[:min(len(d.few), d.Target.NumLimits())]
}

// View is what a decision says of one limit; see the contract's "Per limit".
type View struct {
	Limit      *Limit
	Used       int64 // units
	Remaining  int64 // units
	Exceeded   bool  // the limit is past its units; or a soft limit or a shadow did not admit the hit
	RetryAfter int64 // µs, 0 when admitted or when this limit alone would admit, or Never
	ResetAt    int64 // µs since the epoch, or NoReset
	Reserved   int64 // units of Used that open reservations hold
}

// NumViews is the number of limits that View tells of.
func (d *Decision) NumViews() int {
	if d.Replayed {
		return len(d.answer)
	}
	return d.Target.NumLimits()
}

// View is the decision's view of the plan's i-th limit, 0 ≤ i < NumViews().
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
	case l.Mode == Hard: // past its units after an overrun, or when its limit was lowered
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

// moment is that of the i-th limit over all counters.
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

// Wait is how long after At the i-th limit over all counters admits the cost, see Limit.wait. It is
// at most the time to the end of the override that the limit is, or to another plan: another limit
// counts then.
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

// resetAt is when the whole quota of the i-th limit over all counters is there again, by the limits
// of another plan where that one counts by then. At the change a limit that the other plan lacks is gone.
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
	case l.kept != inBucket: // it comes back alike, whatever the limit
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

// FromNow is a wait from At on, as it is from the customer's clock on: for headers, which tell no
// instant that a client could count from.
func (d *Decision) FromNow(wait int64) int64 {
	if wait <= 0 { // none, or Never
		return wait
	}
	return AddUpTo(wait, d.Ahead)
}

// Now is what the customer's clock showed when the hit was judged, µs.
func (d *Decision) Now() int64 { return d.At - d.Ahead }

// RefusedBy reports whether the i-th limit over all counters refuses the cost. Only hard ones do.
func (d *Decision) RefusedBy(i int) bool {
	l := d.Target.LimitAt(i)
	return l.Mode == Hard && d.Cost > max(0, l.rules.headroom(l, d.stands()[i], d.moment(i)))
}

// OneVersion is the version of the one counter that was judged, or -1 if there are several or
// units are held on it.
func (d *Decision) OneVersion() int64 {
	if d.versions != nil || d.holds != nil {
		return -1
	}
	return d.version
}

// RetryAfter is the largest wait of all hard limits after At in µs: 0 when admitted, Never when one
// is.
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

// Overrun admits the decision's cost, which has been spent already, whatever hard limits say. A
// charge of it leaves them past their units, as far as 64 bits can count, as a soft limit is.
func (d Decision) Overrun() Decision {
	d.Allowed = true
	return d
}

// Headroom is the largest cost that all hard limits would admit on these buckets, 0 or more.
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
	Departed []int64 // buckets of limits that left, see Settle; nil: none, or they were not read
	At       int64   // instant of the last charge
	Version  int64
	Change   int64
	Holds    *Holds // all of them; state is without their mark then
}

// Judge says what the rows (one a counter of the target, in its order) decide for a hit
// at now, by the Go model. Judge charges nothing: the decision's buckets are those before the
// hit. The caller has given back the holds that have expired (see Target.Expire).
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

// WindowStart is when the running window of the plan's i-th limit began, µs, 0 ≤ i < NumViews().
// runs is false of a limit that has no window with a start, and of a window that begins with a
// first hit when none was charged.
func (d *Decision) WindowStart(i int) (start int64, runs bool) {
	i = d.Target.place(i)
	l := d.Target.LimitAt(i)
	return l.rules.began(l, d.stands()[i], d.moment(i))
}

// Shift adds units to the decision's buckets; units below 0 are taken off. It leaves out the
// shadows that were spared. So the decision of a run's last hit becomes that of an earlier hit.
func (d *Decision) Shift(units int64) {
	stands := d.stands()
	for i := range stands {
		if l := d.Target.LimitAt(i); d.spared&(1<<i) == 0 {
			stands[i] = l.rules.charge(l, stands[i], units, d.moment(i))
		}
	}
}

// SameAs reports whether two decisions are the same but for where their state was read.
func (d *Decision) SameAs(other *Decision) bool {
	return d.Allowed == other.Allowed && d.Cost == other.Cost && d.At == other.At && d.Degraded == other.Degraded &&
		slices.Equal(d.stands(), other.stands()) && slices.Equal(d.Versions(), other.Versions()) && d.spared == other.spared
}

// String says all of a decision, for logs and tests.
func (d *Decision) String() string {
	if d.Target == nil {
		return "{no decision}"
	}
	return fmt.Sprintf("{allowed %v cost %d at %d as of %d versions %v buckets %v logs %v spared %b}", d.Allowed, d.Cost, d.At, d.AsOf, d.Versions(),
		d.stands(), d.logs, d.spared)
}
