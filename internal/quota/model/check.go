package model

import (
	"errors"
	"fmt"
)

// ErrMalformed says that a counter's stored row is none that the Go model writes. Somebody has
// written it by hand, or the table is damaged.
var ErrMalformed = errors.New("a counter's row cannot be read")

// lastInstant is the first microsecond of the year 10000, which no clock shows.
const lastInstant = int64(253402300800e6)

// Check reports whether the row of the target's counter with this attribute is one that the Go
// model may have written. Whoever reads a row asks, before the Go model sees the row: the model's
// sums and loops are right for such rows only. Errors: ErrMalformed.
func (t *Target) Check(attribute string, r *Row) error {
	malformed := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	if r.At < 0 || r.At >= lastInstant || r.Version < 0 || r.Change < 0 {
		return malformed("at is %d, version %d, change %d", r.At, r.Version, r.Change)
	}
	limits, m := t.limitsOf(attribute), t.moment(r.At)
	for i := 0; i < len(r.State); {
		if len(r.State)-i < BucketLen {
			return malformed("state ends within the bucket at %d", i)
		}
		id, b, log := r.State[i], bucket{r.State[i+1], r.State[i+2]}, []int64(nil)
		i += BucketLen
		if id < 0 {
			if b.aux < 0 || b.aux > int64(len(r.State)-i) {
				return malformed("a log of %d integers at %d, where state has %d more", b.aux, i, len(r.State)-i)
			}
			log = r.State[i : i+int(b.aux)]
			i += int(b.aux)
		}
		if l := limitByID(limits, id, m); l != nil && !l.rules.sound(l, b, log) {
			return malformed("limit %s has the bucket %d, %d %d", l.Name, b.level, b.aux, log)
		}
	}
	for _, h := range r.Holds.all() {
		if h.At < 0 || h.At >= lastInstant || h.Expires < 0 || h.Expires >= lastInstant || h.Cost < 0 || h.Cost > MaxNumber {
			return malformed("a hold of %d units from %d to %d", h.Cost, h.At, h.Expires)
		}
	}
	return nil
}

// CheckHour reports whether a row may have units in the hour that begins at hour, µs. Civil hours of
// 1970's first one begin up to an hour before it. Errors: ErrMalformed.
func CheckHour(hour, units int64) error {
	if units < 0 || hour <= -3600e6 || hour >= lastInstant {
		return fmt.Errorf("%w: %d units in the hour %d", ErrMalformed, units, hour)
	}
	return nil
}

// What each algorithm stores in a bucket, see rules.

func counts(n int64) bool { return n >= 0 && n <= softCap }

func (fixedWindow) sound(_ *Limit, b bucket, _ []int64) bool { return counts(b.level) }
func (allocation) sound(_ *Limit, b bucket, _ []int64) bool  { return counts(b.level) }
func (concurrency) sound(*Limit, bucket, []int64) bool       { return true } // it has no bucket

func (slidingWindow) sound(_ *Limit, b bucket, _ []int64) bool {
	return counts(b.level) && counts(b.aux)
}

func (firstHitWindow) sound(_ *Limit, b bucket, _ []int64) bool {
	return counts(b.level) && b.aux >= 0 && b.aux < lastInstant
}

// sound: a bucket from which nothing is missing may be of no limit, as an untouched one is.
func (tokenBucket) sound(_ *Limit, b bucket, _ []int64) bool {
	return b.level == 0 || b.level > 0 && b.aux < 0 && -1-b.aux <= MaxNumber
}

// sound: each block is later than the one before, and the newest is the last.
func (slidingLog) sound(l *Limit, b bucket, log []int64) bool {
	if len(log) == 0 {
		return b.level == 0
	}
	if len(log) == 1 || log[0] < 0 || log[0] > lastInstant/l.Precision || b.level < 0 {
		return false
	}
	last := l.logSpan() // ages
	for _, stored := range log[1:] {
		age := log[0]%l.logSpan() - stored/l.logUnits()
		if age < 0 {
			age += l.logSpan()
		}
		if stored < 0 || stored/l.logUnits() >= l.logSpan() || age >= last {
			return false
		}
		last = age
	}
	return last == 0
}
