package calendar

import (
	"math"
	"time"
)

// Units in microseconds.
const (
	second int64 = 1_000_000
	hour         = 3600 * second
	day          = 24 * hour
)

// The range of instants: the years 0000 to 9999 in UTC, which RFC 3339 can represent.
const (
	MinInstant int64 = -62_167_219_200 * second
	MaxInstant int64 = 253_402_300_800*second - 1
)

// maxOffset is larger than any timezone's offset from UTC. IANA's largest offset is 15:56:08, of Manila before
// 1844. Fixed offsets stay below a day.
const maxOffset = 26 * hour

// wall is a date and time on a wall clock without a timezone. Its value is the number of microseconds since
// 1970-01-01T00:00:00 if the timezone were UTC.
type wall int64

// civil returns the wall-clock time as a time.Time in UTC.
func (w wall) civil() time.Time { return time.UnixMicro(int64(w)).UTC() }

// stretch returns the offset (local minus UTC) in force at an instant, and bounds start <= at < end within which
// the offset is constant. The bounds are those of the timezone's data, so the offset may be the same beyond
// them.
func stretch(at int64, loc *time.Location) (offset, start, end int64) {
	t := time.UnixMicro(at).In(loc)
	_, seconds := t.Zone()
	from, to := t.ZoneBounds()
	start, end = math.MinInt64, math.MaxInt64
	if !from.IsZero() {
		start = from.UnixMicro()
	}
	if !to.IsZero() {
		end = to.UnixMicro()
	}
	// After the end of a timezone's table, ZoneBounds ends the stretch after 365 days of the UTC year. On the
	// last day of a leap year, this end is before at.
	if end <= at {
		end += day
	}
	return int64(seconds) * second, start, end
}

// wallAt returns the wall-clock time in the timezone at an instant.
func wallAt(at int64, loc *time.Location) wall {
	offset, _, _ := stretch(at, loc)
	return wall(at + offset)
}

// instant returns the instant at which a clock in the timezone shows w. In an overlap, it returns the first of
// two instants. In a gap, the clock never shows w, so it returns the instant at which the clock would have shown
// w without the jump. Both results are w minus the offset before the jump.
func (w wall) instant(loc *time.Location) int64 {
	offset, _, end := stretch(int64(w)-maxOffset, loc)
	for {
		at := int64(w) - offset
		if at < end {
			return at
		}
		next, _, nextEnd := stretch(end, loc)
		if int64(w)-next < end {
			return at // the jump at end skipped w
		}
		offset, end = next, nextEnd
	}
}

// clamp returns the instant in range that is nearest to at.
func clamp(at int64) int64 { return min(max(at, MinInstant), MaxInstant) }

// floorDiv divides and rounds down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
