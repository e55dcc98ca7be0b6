package model

import (
	"errors"
	"fmt"
)

// ErrMalformed reports that the Go model cannot have written a counter's stored row. The row was written by hand,
// or the table is damaged.
var ErrMalformed = errors.New("a counter's row cannot be read")

// lastInstant is the first microsecond of the year 10000, which no clock reaches.
const lastInstant = int64(253402300800e6)

// Check reports whether the Go model may have written the row of the target's counter with this attribute. Call
// Check after each read of a row, before the Go model uses the row, because the model's sums and loops are correct
// for such rows only. Errors: ErrMalformed.
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
	if !soundDeparted(limits, r.Departed, m) {
		return malformed("the buckets of limits that left are %d", r.Departed)
	}
	for _, h := range r.Holds.all() {
		if h.At < 0 || h.At >= lastInstant || h.Expires < 0 || h.Expires >= lastInstant || h.Cost < 0 || h.Cost > MaxNumber {
			return malformed("a hold of %d units from %d to %d", h.Cost, h.At, h.Expires)
		}
	}
	return nil
}

// CheckHour reports whether a row may have units in the hour that begins at hour, µs. In some timezones, the first
// hour of 1970 begins up to an hour before the epoch. Errors: ErrMalformed.
func CheckHour(hour, units int64) error {
	if units < 0 || hour <= -3600e6 || hour >= lastInstant {
		return fmt.Errorf("%w: %d units in the hour %d", ErrMalformed, units, hour)
	}
	return nil
}

// counts reports whether a bucket may have counted n units.
func counts(n int64) bool { return n >= 0 && n <= softCap }
