package quota

// A bucket's level is one integer at one instant: the units used in the window
// (fixed_window), or the parts missing from a full bucket (token_bucket). rules is what
// an algorithm knows of levels; each has a file of its own, and its twin is a branch of
// quotad_step_v1.
type rules interface {
	// level is what is stored (a level, and the scale it was written in) as it stands at
	// the instant at ≥ since.
	level(l *Limit, stored, scale, since, at int64) int64
	// room is the largest cost the limit admits at this level, never below 0.
	room(l *Limit, level int64) int64
	// weight is what one unit adds to the level; stored as the level's scale.
	weight(l *Limit) int64
	// used is what counts against the limit at this level, in units.
	used(l *Limit, level int64) int64
	// wait is how long, in µs, until the limit admits a cost that it does not admit now,
	// if nothing else happens, or Never.
	wait(l *Limit, level, at, cost int64) int64
	// resetAt is the first instant at which the whole quota would be there again: at
	// itself for an untouched bucket, and for a closed one, whose whole quota is nothing.
	resetAt(l *Limit, level, at int64) int64
	// encode appends the limit as quotad_step_v1 takes it, five integers, for the instant
	// at, and returns with it the first instant for which they no longer hold.
	encode(l *Limit, dst []int64, at int64) ([]int64, int64)
}

// bucketLen is the number of integers a bucket takes in a counter's state: the limit's
// identity, its level, and the scale the level was written in.
const bucketLen = 3

// level finds the limit's bucket in a counter's state of instant since, and returns its
// level at the instant at ≥ since. A bucket that is not there is untouched: 0.
func (l *Limit) level(state []int64, since, at int64) int64 {
	for i := 0; i+bucketLen <= len(state); i += bucketLen {
		if state[i] == l.ID {
			return l.rules.level(l, state[i+1], state[i+2], since, at)
		}
	}
	return 0
}

func (l *Limit) room(level int64) int64        { return l.rules.room(l, level) }
func (l *Limit) weight() int64                 { return l.rules.weight(l) }
func (l *Limit) used(level int64) int64        { return l.rules.used(l, level) }
func (l *Limit) resetAt(level, at int64) int64 { return l.rules.resetAt(l, level, at) }

// wait is the shortest time in µs after which the limit admits cost if nothing else
// happens; 0 when it does now, Never when it never will.
func (l *Limit) wait(level, at, cost int64) int64 {
	if cost <= l.room(level) {
		return 0
	}
	return l.rules.wait(l, level, at, cost)
}

func (l *Limit) encode(dst []int64, at int64) ([]int64, int64) { return l.rules.encode(l, dst, at) }

// ceilDiv is ⌈a/b⌉ for a ≥ 0, b > 0, without overflow.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}
