package calendar

import (
	"math"
	"time"
)

// Durations in microseconds.
const (
	second int64 = 1_000_000
	hour         = 3600 * second
	day          = 24 * hour
)

// The range of instants: the years 0000 to 9999 in UTC, which are all the years that RFC 3339 can represent.
const (
	MinInstant int64 = -62_167_219_200 * second
	MaxInstant int64 = 253_402_300_800*second - 1
)

// maxOffset exceeds any zone's offset from UTC. IANA's largest offset is 15:56:08 (Manila before 1844), and
// fixed zones stay below a day.
const maxOffset = 26 * hour

// A wall is the date and time on a wall clock, without a zone. Its number is the microseconds since
// 1970-01-01T00:00:00, as if the clock showed UTC.
type wall int64

// civil returns a wall-clock time as a time.Time in UTC, to read its date and time.
func (w wall) civil() time.Time { return time.UnixMicro(int64(w)).UTC() }

// stretch returns the offset (local minus UTC) in force at an instant, and bounds start <= at < end between
// which the offset is constant. The bounds are those of the zone's data, so the offset may be the same beyond
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
	// After the end of a zone's table, ZoneBounds returns an end that is 365 days after the start of the UTC
	// year. On the last day of a leap year, that end is before at.
	if end <= at {
		end += day
	}
	return int64(seconds) * second, start, end
}

// wallAt returns the time that a clock in the zone shows at an instant.
func wallAt(at int64, loc *time.Location) wall {
	offset, _, _ := stretch(at, loc)
	return wall(at + offset)
}

// instant returns the instant at which a clock in the zone shows w. In an overlap it returns the first of the
// two instants. In a gap, in which the clock never shows w, it returns the instant at which the clock would have
// shown w without the jump. Both results are w minus the offset before the jump.
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

// floorDiv returns a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
