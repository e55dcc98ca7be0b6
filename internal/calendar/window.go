package calendar

import "time"

// Calendar windows are periods that begin at these anchors. So a window starts at local
// midnight, by the rule for jumps. A clock that is set back over midnight shows it twice: the
// first one counts. A clock that jumps over midnight starts the window at the instant at which
// midnight would have been.
const (
	epochMidnight wall = 0             // 1970-01-01, a Thursday
	epochMonday   wall = 4 * wall(day) // 1970-01-05
)

// Day returns the local day [start, end) that holds at. It is 24 hours long but
// where the zone's clock jumps. A day that the zone skipped holds no instant
// and is never returned.
func Day(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMidnight, 0, 1, loc, clamp(at))
	return start, end
}

// DaysLater returns the instant so many days after one, 0 or more, at which a clock of the zone shows the
// same time of day. Where that clock jumps (a gap or an overlap), the offset before the jump counts. It is
// never before at.
func DaysLater(at int64, days int, loc *time.Location) int64 {
	then := wallAt(clamp(at), loc) + wall(min(max(int64(days), 0), maxDays)*day)
	return max(at, then.instant(loc)) // of no days: the second of two times that the clock shows
}

// Week returns the local week [start, end), from Monday, that holds at.
func Week(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMonday, 0, 7, loc, clamp(at))
	return start, end
}

// Month returns the local calendar month [start, end) that holds at.
func Month(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMidnight, 1, 0, loc, clamp(at))
	return start, end
}

// Year returns the local calendar year [start, end) that holds at.
func Year(at int64, loc *time.Location) (start, end int64) {
	_, start, end = period(epochMidnight, 12, 0, loc, clamp(at))
	return start, end
}
