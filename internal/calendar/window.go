package calendar

import "time"

// Calendar windows are periods that begin at these anchors, so a window starts at local midnight, by the
// package's rule for clock jumps. If a clock is set back over midnight and shows it twice, the window starts at
// the first midnight. If a clock skips midnight, the window starts at the instant at which midnight would have
// been.
const (
	epochMidnight wall = 0             // 1970-01-01, a Thursday
	epochMonday   wall = 4 * wall(day) // 1970-01-05
)

// Day returns the local day [start, end) that contains at. The day is 24 hours long unless the zone's clock
// jumps. A day that the zone skipped contains no instant and is never returned.
func Day(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMidnight, 0, 1, loc, clamp(at))
	return start, end
}

// DaysLater returns the instant that is days days after at, at which a clock in the zone shows the same time of
// day. If the clock jumps at that time (a gap or an overlap), the offset before the jump is used. The result is
// never before at, and negative days count as 0.
func DaysLater(at int64, days int, loc *time.Location) int64 {
	then := wallAt(clamp(at), loc) + wall(min(max(int64(days), 0), maxDays)*day)
	return max(at, then.instant(loc)) // max matters for 0 days, if at is the second of two equal clock times
}

// Week returns the local week [start, end), from Monday, that contains at.
func Week(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMonday, 0, 7, loc, clamp(at))
	return start, end
}

// Month returns the local calendar month [start, end) that contains at.
func Month(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMidnight, 1, 0, loc, clamp(at))
	return start, end
}

// Year returns the local calendar year [start, end) that contains at.
func Year(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMidnight, 12, 0, loc, clamp(at))
	return start, end
}
