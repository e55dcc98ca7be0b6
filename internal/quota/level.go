package quota

import "quotad/internal/calendar"

// bucket is the state of one limit at one instant. What the two integers mean is the
// algorithm's own affair; level 0 and aux 0 is an untouched one.
type bucket struct{ level, aux int64 }

// moment is the instant that buckets stand at, and the calendar of their customer, by
// which some windows start.
type moment struct {
	at      int64 // µs
	periods *calendar.Periods
}

// rules is what an algorithm knows of buckets. Each has a file of its own, and its twin
// is a branch of quotad_step_v1.
type rules interface {
	// stand is a bucket stored at the instant since as it stands at m.at ≥ since.
	stand(l *Limit, stored bucket, since int64, m moment) bucket
	// room is the largest cost the limit admits, never below 0.
	room(l *Limit, b bucket, m moment) int64
	// charge adds a cost, or takes back (below 0) what was added at the same instant.
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
	// encode appends the limit as quotad_step_v1 takes it, five integers, for the moment,
	// and returns with it the first instant for which they no longer hold.
	encode(l *Limit, dst []int64, m moment) ([]int64, int64)
}

// bucketLen is the number of integers a bucket takes in a counter's state: the limit's
// identity, and the bucket.
const bucketLen = 3

// stand finds the limit's bucket in a counter's state of instant since, as it stands at
// m.at ≥ since. A bucket that is not there is untouched.
func (l *Limit) stand(state []int64, since int64, m moment) bucket {
	var stored bucket
	for i := 0; i+bucketLen <= len(state); i += bucketLen {
		if state[i] == l.ID {
			stored = bucket{state[i+1], state[i+2]}
			break
		}
	}
	return l.rules.stand(l, stored, since, m)
}

// wait is the shortest time in µs after which the limit admits cost if nothing else
// happens; 0 when it does now, Never when it never will.
func (l *Limit) wait(b bucket, cost int64, m moment) int64 {
	if cost <= l.rules.room(l, b, m) {
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
