package quota

import "math"

// A bucket's level is one integer at one instant: the units used in the window
// (fixed_window), or the parts missing from a full bucket (token_bucket). This file is
// the Go twin of quotad_step_v1; each branch names the algorithm's rule once.

// bucketLen is the number of integers a bucket takes in a counter's state: the limit's
// identity, its level, and the scale the level was written in.
const bucketLen = 3

// level finds the limit's bucket in a counter's state of instant since, and returns its
// level at the instant at ≥ since. A bucket that is not there is untouched: 0.
func (l *Limit) level(state []int64, since, at int64) int64 {
	for i := 0; i+bucketLen <= len(state); i += bucketLen {
		if state[i] == l.ID {
			if l.Algorithm == FixedWindow {
				return l.fixedWindowLevel(state[i+1], since, at)
			}
			return l.tokenBucketLevel(state[i+1], state[i+2], at-since)
		}
	}
	return 0
}

// room is the largest cost the limit admits at this level, never below 0.
func (l *Limit) room(level int64) int64 {
	if l.Algorithm == FixedWindow {
		return max(0, l.Limit-level)
	}
	return max(0, (l.capacity-level)/l.scale)
}

// weight is what one unit adds to the level.
func (l *Limit) weight() int64 {
	if l.Algorithm == FixedWindow {
		return 1
	}
	return l.scale
}

// used is what counts against the limit at this level, in units.
func (l *Limit) used(level int64) int64 {
	if l.Algorithm == FixedWindow {
		return level
	}
	return l.Burst - l.room(level)
}

// wait is the shortest time in µs after which the limit admits cost if nothing else
// happens; 0 when it does now, Never when it never will.
func (l *Limit) wait(level, at, cost int64) int64 {
	if cost <= l.room(level) {
		return 0
	}
	if l.Algorithm == FixedWindow {
		if cost > l.Limit {
			return Never
		}
		return windowStart(at, l.Window) + l.Window - at
	}
	if cost > l.Burst || l.refill == 0 {
		return Never
	}
	return ceilDiv(level-(l.capacity-cost*l.scale), l.refill)
}

// resetAt is the first instant at which the whole quota would be there again: at itself
// for an untouched bucket, and for a closed one, whose whole quota is nothing. What takes
// longer than 64 bits of microseconds can name comes at their last.
func (l *Limit) resetAt(level, at int64) int64 {
	switch {
	case level == 0:
		return at
	case l.Algorithm == FixedWindow:
		return windowStart(at, l.Window) + l.Window
	case l.refill == 0:
		return at
	}
	return at + min(ceilDiv(level, l.refill), math.MaxInt64-at)
}

// encode appends the limit as quotad_step_v1 takes it, for an instant in the present
// window, and returns with it the first instant for which it no longer holds.
func (l *Limit) encode(dst []int64, at int64) ([]int64, int64) {
	if l.Algorithm == FixedWindow {
		start := windowStart(at, l.Window)
		return append(dst, l.ID, int64(FixedWindow), l.Limit, start, 0), start + l.Window
	}
	return append(dst, l.ID, int64(TokenBucket), l.capacity, l.refill, l.scale), math.MaxInt64
}

// ceilDiv is ⌈a/b⌉ for a ≥ 0, b > 0, without overflow.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}
