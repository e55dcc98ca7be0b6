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

// The instants in range, the whole years 0000 to 9999 in UTC: all that RFC 3339
// can write.
const (
	MinInstant int64 = -62_167_219_200 * second
	MaxInstant int64 = 253_402_300_800*second - 1
)

// maxOffset is more than any zone's distance from UTC (IANA's largest is
// 15:56:08, of Manila before 1844; fixed zones stay below a day).
const maxOffset = 26 * hour

// A wall is the date and time on a wall clock, without a zone. It is the microseconds since
// 1970-01-01T00:00:00 that it would be in UTC.
type wall int64

// civil gives a wall clock's date and time by their names.
func (w wall) civil() time.Time { return time.UnixMicro(int64(w)).UTC() }

// stretch returns the offset (local minus UTC) in force at an instant, and
// bounds start <= at < end between which it is the same. Bounds are where the
// zone's data say so: the offset need not differ beyond them.
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
	// Past the end of a zone's table, ZoneBounds ends the stretch after 365 days of the UTC
	// year. On the last day of a leap year that end lies before at.
	if end <= at {
		end += day
	}
	return int64(seconds) * second, start, end
}

// wallAt returns what a clock in the zone shows at an instant.
func wallAt(at int64, loc *time.Location) wall {
	offset, _, _ := stretch(at, loc)
	return wall(at + offset)
}

// instant returns the instant at which a clock in the zone shows w. In an overlap that is the
// first of two. In a gap the clock never shows w: then it is the instant at which it would
// have, had it not jumped. Both are w less the offset before the jump.
func (w wall) instant(loc *time.Location) int64 {
	offset, _, end := stretch(int64(w)-maxOffset, loc)
	for {
		at := int64(w) - offset
		if at < end {
			return at
		}
		next, _, nextEnd := stretch(end, loc)
		if int64(w)-next < end {
			return at // the jump at end went over w
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
