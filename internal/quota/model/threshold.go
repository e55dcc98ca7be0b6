package model

import (
	"slices"
)

// Thresholds: a limit may ask to be told of when so many percent of it are used. What was raised, and is
// not armed again, stands in the row of the customer's own counter, beside the limit's bucket. So it is
// written with the charge, and nothing is stored of a limit that has raised nothing.
//
// Use only falls between two charges: by time, by what is given back, by holds that expire. So it is least
// right before a charge, and that is when thresholds are armed again.

// MaxNotify bounds how many thresholds a limit may have.
const MaxNotify = 5

// leastNotified is the shortest window, or time to fill, of a limit that has thresholds, µs.
const leastNotified = int64(3600e6)

// rearm is how many points use must be below a threshold to arm it again.
const rearm = 10

// capNotify are the thresholds of each cap.
var capNotify = []int{50, 80, 100}

// raisedID is the identity of what was raised of a limit. It is below 0, so who reads a state skips it as a
// log that it does not know. Its level is the identity of the limit's bucket, and raisedLen integers
// follow: see raised.
const (
	raisedID  = int64(-1)
	raisedLen = 4
)

// raised are the thresholds of a limit that are not armed.
type raised struct {
	of   int64    // what percents were of when the limit was judged last, units
	bits [2]int64 // of each percent one bit: 1 to 62, and from 63 on
	// mark: of a fixed window, its start. Of others 0; or where a refusal raised 100 percent, 1 more than
	// the most that has been used since.
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

// percents calls each with those that are raised.
func (r *raised) percents(each func(percent int)) {
	for percent := 1; percent <= 100; percent++ {
		if r.has(percent) {
			each(percent)
		}
	}
}

// raisedAt is where a state says what was raised of a bucket; −1: nowhere.
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

// append adds what was raised of a bucket to a state, if anything was.
func (r *raised) append(state []int64, id int64) []int64 {
	if r.none() {
		return state
	}
	return append(state, raisedID, id, raisedLen, 0, r.of, r.bits[0], r.bits[1], r.mark)
}

// withRaised is a state, in memory of its own, that says of a bucket what was raised.
func withRaised(state []int64, id int64, r *raised) []int64 {
	next := make([]int64, 0, len(state)+BucketLen+raisedLen)
	if i := raisedAt(state, id); i >= 0 {
		next = append(append(next, state[:i]...), state[i+BucketLen+raisedLen:]...)
	} else {
		next = append(next, state...)
	}
	return r.append(next, id)
}

// windowed reports whether the limit's thresholds are raised once in a window.
func (l *Limit) windowed() bool { return l.Algorithm == FixedWindow }

// windowOf is the fixed window that runs, or a cap's period, µs; 0 and 0 of other limits.
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

// fillsTooFast checks the thresholds of a limit that refills, once it is reduced.
func (l *Limit) fillsTooFast() *FieldError {
	if us, known := l.FillTime(); l.notify == nil || !l.refills || !known || us >= leastNotified {
		return nil
	}
	return &FieldError{"notify", "needs a bucket that takes an hour or more to fill: a lower limit, a longer window or a larger burst"}
}

// Notifies reports whether a limit of the target has thresholds.
func (t *Target) Notifies() bool { return t.notifies }

// arm takes out those thresholds that a bucket has armed again. The bucket was stored at the instant since,
// and stands at m.at, before a charge.
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
	if r.of != of { // the limit was edited
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

// armedAt is the use, in units, that arms a threshold again: 10 points below it. A refusal raises 100
// percent at any use: then it is 10 points below the most that has been used since, and −1 where
// so much was not used. A threshold of up to 10 percent is armed when nothing is used.
func (r *raised) armedAt(percent int) int64 {
	if percent == 100 && r.mark > 0 {
		return max(-1, min(r.of, r.mark-1)-mulDivUp(r.of, rearm, 100))
	}
	return shareOf(r.of, int64(max(0, percent-rearm)), 100)
}

// unitsAt are the least units that are so many percent, or more.
func unitsAt(percent int, of int64) int64 { return mulDivUp(of, int64(percent), 100) }

// reach raises those thresholds that a bucket has reached, and returns their percents. refused: the limit
// has refused a hit.
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

// follow notes what is used since a refusal raised 100 percent.
func (r *raised) follow(l *Limit, used int64) {
	switch {
	case l.windowed() || r.mark == 0:
	case used >= r.of:
		r.mark = 0
	default:
		r.mark = max(r.mark, used+1)
	}
}

// carry appends to next what was raised of a limit, as a charge leaves it.
func (l *Limit) carry(next, state []int64, since int64, before, after bucket, m moment) []int64 {
	r := l.carried(state, since, before, after, m)
	return r.append(next, l.BucketID(m))
}

// carried is what was raised of a limit, as a charge leaves it. before and after are its bucket before the
// charge and after it. state is that before, of the instant since.
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
	Start   int64 // of the running window, µs; 0: it has none with a start
	Reset   int64 // the window's end, or the period's of a cap; of others see View.ResetAt
}

// Raise raises what the row of the target's own counter has reached at an instant, and returns it. refused
// has a bit for each limit of the counter that has refused a hit. The row says then what was raised;
// changed reports whether it says something else than before. Nothing is raised twice: who calls Raise
// has the row locked, and writes it.
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

// RefusedOwn has a bit for each limit of the own counter that refuses the decision's cost, see Raise.
func (d *Decision) RefusedOwn() (bits uint32) {
	for i, l := range d.Target.Counters[0].Limits {
		if l.notify != nil && d.RefusedBy(i) {
			bits |= 1 << i
		}
	}
	return bits
}
