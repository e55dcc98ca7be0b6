package model

import (
	"math"

	"quotad/internal/calendar"
)

// bucket is the state of one limit at one instant. What the two integers mean is the
// algorithm's own affair; level 0 and aux 0 is an untouched one.
type bucket struct{ level, aux int64 }

// moment is the instant that buckets stand at, and the calendar of their customer, by
// which some windows start; of a sliding log also what is stored after its bucket.
type moment struct {
	at      int64 // µs
	periods *calendar.Periods
	log     []int64
	holds   *Holds // on the counter
}

// moment is an instant of the target's customer.
func (t *Target) moment(at int64) moment {
	return moment{at: at, periods: &t.Periods}
}

// softCap is where the level of a limit that went past its units stops, so that no sum of two
// leaves 64 bits; that of a token bucket stops at their end.
const softCap = int64(1)<<62 - 1

// Present is, as the instant of a charge, whatever counts now.
const Present = int64(math.MaxInt64)

// rules is what an algorithm knows of buckets. Each has a file of its own, with its descriptor.
type rules interface {
	// stand is a bucket stored at the instant since as it stands at m.at ≥ since.
	stand(l *Limit, stored bucket, since int64, m moment) bucket
	// room is the largest cost the limit admits; below 0 where it is exceeded.
	room(l *Limit, b bucket, m moment) int64
	// charge adds a cost, as far as 64 bits can count, or takes back (below 0) what was added at
	// the same instant.
	charge(l *Limit, b bucket, cost int64, m moment) bucket
	// used is what counts against the limit, in units.
	used(l *Limit, b bucket, m moment) int64
	// wait is how long, in µs, until the limit admits a cost that it does not admit now,
	// if nothing else happens, or Never.
	wait(l *Limit, b bucket, cost int64, m moment) int64
	// resetAt is the first instant at which the whole quota would be there again: now for
	// an untouched bucket, and for a closed one, whose whole quota is nothing; NoReset when
	// it never is.
	resetAt(l *Limit, b bucket, m moment) int64
	// giveBack takes a cost off a bucket that stands at m.at and was charged with it at the
	// instant charged ≤ m.at, as far as it still counts; present: off what counts now, the
	// newest first. Of a sliding log see logWithout.
	giveBack(l *Limit, b bucket, charged, cost int64, m moment) bucket
	// backdate adds a cost to a bucket that stands at m.at, as of the instant at ≤ m.at, as
	// far as it still counts and whether it fits or not. Of a sliding log see backdated.
	backdate(l *Limit, b bucket, at, cost int64, m moment) bucket
	// countsFrom is the first instant whose charges may still count in a bucket that stands
	// at m.at.
	countsFrom(l *Limit, b bucket, m moment) int64
	// began is when the running window began; false where none runs, or windows have no start.
	began(l *Limit, b bucket, m moment) (start int64, runs bool)
	// sound reports whether the algorithm may have stored the bucket, and after it the log.
	sound(l *Limit, b bucket, log []int64) bool
	// countable is the largest cost that a soft limit can count wholly.
	countable(l *Limit, b bucket, m moment) int64
	// lifetime and mostIn: see Limit.Lifetime and Limit.MostIn.
	lifetime(l *Limit) int64
	mostIn(l *Limit, time int64, whole bool) int64
}

// BucketLen is the number of integers a bucket takes in a counter's state: the limit's
// identity, and the bucket. After that of a log, whose identity is below 0, come aux more.
const BucketLen = 3

// BucketID tells the limit's bucket from others in a row. Where a customer's billing periods
// were changed, a bucket by billing period starts again: its units are those of the hours
// in the period, however many of them were charged at that very instant.
func (l *Limit) BucketID(m moment) int64 {
	if !l.byPeriod {
		return l.ID
	}
	from, changed := m.periods.Since(m.at)
	if !changed {
		return l.ID
	}
	return l.ID ^ int64(mix(uint64(from))>>1)
}

// findBucket finds the bucket of an identity in a counter's state, and its log. One that is
// not there is untouched.
func findBucket(state []int64, id int64) (b bucket, log []int64) {
	for i := 0; i+BucketLen <= len(state); i += BucketLen {
		more := 0
		if state[i] < 0 {
			more = int(state[i+2])
		}
		if state[i] == id {
			return bucket{state[i+1], state[i+2]}, state[i+BucketLen : i+BucketLen+more]
		}
		i += more
	}
	return bucket{}, nil
}

// stand is the limit's bucket in a counter's state of instant since, as it stands at
// m.at ≥ since, and its log.
func (l *Limit) stand(state []int64, since int64, m moment) (bucket, []int64) {
	b, log := findBucket(state, l.BucketID(m))
	m.log = log
	return l.rules.stand(l, b, since, m), log
}

// wait is the shortest time in µs after which the limit admits cost if nothing else
// happens; 0 when it does now, Never when it never will.
func (l *Limit) wait(b bucket, cost int64, m moment) int64 {
	if cost <= max(0, l.rules.room(l, b, m)) {
		return 0
	}
	return l.rules.wait(l, b, cost, m)
}

// ceilDiv is ⌈a/b⌉ for a ≥ 0, b > 0, without overflow.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

// floorDiv is ⌊a/b⌋ for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
