package model

import (
	"slices"
)

// A limit may have thresholds, which are raised as events when a percentage of the limit is used. Raised
// thresholds that are not armed again are stored in the row of the customer's own counter, beside the limit's
// bucket. Therefore they are written with the charge, and nothing is stored for a limit that has raised nothing.
//
// Between two charges, usage only falls: over time, by refunds, and when holds expire. It is lowest just before a
// charge, so thresholds are armed again at that time.

// MaxNotify is the maximum number of thresholds of a limit.
const MaxNotify = 5

// leastNotified is the shortest window or fill time of a limit that has thresholds, µs.
const leastNotified = int64(3600e6)

// rearm is the number of percentage points by which usage must fall below a threshold to arm it again.
const rearm = 10

// capNotify contains the thresholds of each cap.
var capNotify = []int{50, 80, 100}

// raisedID is the identity of the raised thresholds of a limit. It is negative, so readers of a state skip the
// entry as an unknown log. The entry's level is the identity of the limit's bucket, and raisedLen integers follow,
// see raised.
const (
	raisedID  = int64(-1)
	raisedLen = 4
)

// raised contains the thresholds of a limit that have been raised and are not armed again.
type raised struct {
	of   int64    // the units that were 100 percent when the limit was last judged
	bits [2]int64 // one bit for each percentage: 1 to 62, and from 63 on
	// mark is the start of a fixed window. For other limits, mark is 0, or 1 more than the maximum usage since a
	// refusal raised 100 percent.
	mark int64
}

func bitOf(percent int) (word int, bit int64) { return percent / 63, 1 << (percent % 63) }

func (r *raised) has(percent int) bool {
	word, bit := bitOf(percent)
	return r.bits[word]&bit != 0
}

func (r *raised) set(percent int) {
	word, bit := bitOf(percent)
	r.bits[word] |= bit
}

func (r *raised) clear(percent int) {
	word, bit := bitOf(percent)
	r.bits[word] &^= bit
}

func (r *raised) none() bool { return r.bits == [2]int64{} }

// percents calls each with the raised percentages.
func (r *raised) percents(each func(percent int)) {
	for percent := 1; percent <= 100; percent++ {
		if r.has(percent) {
			each(percent)
		}
	}
}

// raisedAt returns the index of a bucket's raised thresholds in a state, or −1 if there are none.
func raisedAt(state []int64, id int64) int {
	for i := 0; i+BucketLen <= len(state); i += BucketLen {
		if state[i] == raisedID && state[i+1] == id && state[i+2] == raisedLen && i+BucketLen+raisedLen <= len(state) {
			return i
		}
		if state[i] < 0 {
			i += int(state[i+2])
		}
	}
	return -1
}

func raisedIn(state []int64, id int64) (r raised) {
	if i := raisedAt(state, id); i >= 0 {
		more := state[i+BucketLen:]
		r = raised{more[0], [2]int64{more[1], more[2]}, more[3]}
	}
	return r
}

// append adds the raised thresholds of a bucket to a state, if there are any.
func (r *raised) append(state []int64, id int64) []int64 {
	if r.none() {
		return state
	}
	return append(state, raisedID, id, raisedLen, 0, r.of, r.bits[0], r.bits[1], r.mark)
}

// withRaised returns a state, in memory of its own, with the raised thresholds of a bucket.
func withRaised(state []int64, id int64, r *raised) []int64 {
	next := make([]int64, 0, len(state)+BucketLen+raisedLen)
	if i := raisedAt(state, id); i >= 0 {
		next = append(append(next, state[:i]...), state[i+BucketLen+raisedLen:]...)
	} else {
		next = append(next, state...)
	}
	return r.append(next, id)
}

// windowed reports whether the limit's thresholds are raised once in each window.
func (l *Limit) windowed() bool { return l.Algorithm == FixedWindow }

// windowOf returns the running fixed window, or a cap's period, µs. It returns 0 and 0 for other limits.
func (l *Limit) windowOf(b bucket, m moment) (start, end int64) {
	switch r := l.rules.(type) {
	case fixedWindow:
		return r.window(l, m)
	case firstHitWindow:
		return b.aux, b.aux + l.Window
	case capped:
		return r.start, r.end
	}
	return 0, 0
}

// compileNotify reads the thresholds.
func (l *Limit) compileNotify(d *descriptor, s *Spec, refuse refusal) {
	if len(s.Notify) == 0 {
		return
	}
	l.notify = slices.Clone(s.Notify)
	slices.Sort(l.notify)
	switch {
	case len(s.Notify) > MaxNotify:
		refuse("notify", "has at most %d percents", MaxNotify)
	case l.notify[0] < 1 || l.notify[len(l.notify)-1] > 100:
		refuse("notify", "must be whole percents from 1 to 100")
	case len(slices.Compact(slices.Clone(l.notify))) < len(l.notify):
		refuse("notify", "names a percent twice")
	case l.Per != "":
		refuse("notify", "does not go with per: leave one of them out")
	case l.Mode == Shadow:
		refuse("notify", "does not go with mode shadow: use hard or soft")
	case d == nil:
	case d.kept == inHolds:
		refuse("notify", "does not go with %s: leave it out", l.Algorithm)
	case d.window == noWindow || l.Calendar:
	case !d.refills && l.Window > 0 && l.Window < leastNotified:
		refuse("notify", "needs a window of an hour or more")
	}
}

// fillsTooFast checks the thresholds of a limit that refills, after the limit has been reduced.
func (l *Limit) fillsTooFast() *FieldError {
	if us, known := l.FillTime(); l.notify == nil || !l.refills || !known || us >= leastNotified {
		return nil
	}
	return &FieldError{"notify", "needs a bucket that takes an hour or more to fill: a lower limit, a longer window or a larger burst"}
}

// Notifies reports whether a limit of the target has thresholds.
func (t *Target) Notifies() bool { return t.notifies }

// arm returns the raised thresholds without the thresholds that are armed again by a bucket. The bucket was stored
// at the instant since and is in its state at m.at, before a charge.
func (l *Limit) arm(r raised, b bucket, since int64, m moment) raised {
	if r.none() {
		return raised{}
	}
	used, of := l.rules.used(l, b, m), l.Capacity()
	if l.windowed() {
		start, runs := l.rules.began(l, b, m)
		over := !runs || max(since, r.mark) < start
		if l.kept == inPeriod {
			over = r.mark != start
		}
		if over {
			return raised{}
		}
		r.mark = start
	} else {
		r.percents(func(percent int) {
			if used <= r.armedAt(percent) {
				r.clear(percent)
			}
		})
		if !r.has(100) {
			r.mark = 0
		}
	}
	if r.of != of { // the limit has been edited
		r.percents(func(percent int) {
			if used < unitsAt(percent, of) {
				r.clear(percent)
			}
		})
		r.of = of
	}
	if r.none() {
		return raised{}
	}
	return r
}

// armedAt returns the usage, in units, at which a threshold is armed again: 10 points below the threshold. A
// refusal raises 100 percent at any usage. In that case the result is 10 points below the maximum usage since the
// refusal, or −1 if that maximum is below 10 points. A threshold of up to 10 percent is armed when nothing is
// used.
func (r *raised) armedAt(percent int) int64 {
	if percent == 100 && r.mark > 0 {
		return max(-1, min(r.of, r.mark-1)-mulDivUp(r.of, rearm, 100))
	}
	return shareOf(r.of, int64(max(0, percent-rearm)), 100)
}

// unitsAt returns the smallest number of units that is at least the percentage.
func unitsAt(percent int, of int64) int64 { return mulDivUp(of, int64(percent), 100) }

// reach raises the thresholds that a bucket has reached, and returns their percentages. refused means that the
// limit has refused a hit.
func (l *Limit) reach(r *raised, b bucket, m moment, refused bool) (percents []int) {
	used, of := l.rules.used(l, b, m), l.Capacity()
	if of == 0 {
		return nil
	}
	start, runs := l.rules.began(l, b, m)
	for _, percent := range l.notify {
		reached := used >= unitsAt(percent, of)
		if r.has(percent) || !reached && (percent < 100 || !refused || l.windowed() && !runs) {
			continue
		}
		r.set(percent)
		if r.of = of; l.windowed() {
			r.mark = start
		} else if !reached {
			r.mark = used + 1
		}
		percents = append(percents, percent)
	}
	r.follow(l, used)
	return percents
}

// follow records the maximum usage since a refusal raised 100 percent.
func (r *raised) follow(l *Limit, used int64) {
	switch {
	case l.windowed() || r.mark == 0:
	case used >= r.of:
		r.mark = 0
	default:
		r.mark = max(r.mark, used+1)
	}
}

// carry appends to next the thresholds of a limit that are raised after a charge.
func (l *Limit) carry(next, state []int64, since int64, before, after bucket, m moment) []int64 {
	r := l.carried(state, since, before, after, m)
	return r.append(next, l.BucketID(m))
}

// carried returns the thresholds of a limit that are raised after a charge. before and after are the limit's
// bucket before and after the charge. state is the state before the charge, of the instant since.
func (l *Limit) carried(state []int64, since int64, before, after bucket, m moment) raised {
	r := raisedIn(state, l.BucketID(m))
	if r.none() || l.kept == inPeriod && !l.countedIn(state) {
		return r
	}
	if r = l.arm(r, before, since, m); !r.none() {
		r.follow(l, l.rules.used(l, after, m))
	}
	return r
}

// Raised is a threshold that was reached.
type Raised struct {
	Limit   *Limit
	Percent int
	Used    int64 // units
	Start   int64 // the start of the running window, µs; 0: the limit's windows have no start
	Reset   int64 // the end of the window, or of a cap's period; for other limits see View.ResetAt
}

// Raise raises the thresholds that the row of the target's own counter has reached at an instant, and returns
// them. refused contains a bit for each limit of the counter that has refused a hit. Raise adds the raised
// thresholds to the row; changed reports whether this changed the row. No threshold is raised twice, because the
// caller has locked the row and writes it.
func (t *Target) Raise(r *Row, instant int64, refused uint32) (all []Raised, changed bool) {
	if !t.notifies {
		return nil, false
	}
	for i, l := range t.Counters[0].Limits {
		if l.notify == nil || l.kept == inPeriod && !l.countedIn(r.State) {
			continue
		}
		m := t.moment(instant)
		m.holds = r.Holds
		b, log := l.stand(r.State, r.At, m)
		m.log = log
		id := l.BucketID(m)
		old := raisedIn(r.State, id)
		now := l.arm(old, b, r.At, m)
		start, end := l.windowOf(b, m)
		if !l.windowed() {
			end = l.rules.resetAt(l, b, m)
		}
		for _, percent := range l.reach(&now, b, m, refused&(1<<i) != 0) {
			all = append(all, Raised{l, percent, l.rules.used(l, b, m), start, end})
		}
		if now != old {
			r.State, changed = withRaised(r.State, id, &now), true
		}
	}
	return all, changed
}

// RefusedOwn returns a bit for each limit of the own counter that refuses the decision's cost, see Raise.
func (d *Decision) RefusedOwn() (bits uint32) {
	for i, l := range d.Target.Counters[0].Limits {
		if l.notify != nil && d.RefusedBy(i) {
			bits |= 1 << i
		}
	}
	return bits
}
