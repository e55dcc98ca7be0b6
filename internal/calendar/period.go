package calendar

import "time"

// Boundaries that are farther than this from their anchor, about 11,000 years, are clamped to this distance. No
// instant in range reaches them, and the arithmetic cannot overflow.
const (
	maxMonths = 11_000 * 12
	maxDays   = 11_000 * 366
)

// Boundary returns the instant of boundary n, which may be negative. The boundary is the anchor's wall-clock
// time plus n intervals, converted in the timezone by the rule for clock jumps. A day that the month lacks
// becomes the month's last day. All intervals are counted from the anchor itself, so a clamped day does not
// affect later months.
//
// Boundaries never decrease with n. Two boundaries are equal if a timezone skipped a whole day. Boundary panics
// if the interval is invalid.
func Boundary(anchor Anchor, interval Interval, loc *time.Location, n int) int64 {
	months, days := interval.step()
	return boundary(anchor.wall, months, days, loc, int64(n))
}

func boundary(anchor wall, months, days int64, loc *time.Location, n int64) int64 {
	n = min(max(n, -maxDays), maxDays)
	if months != 0 {
		return anchor.addMonths(min(max(n*months, -maxMonths), maxMonths)).instant(loc)
	}
	return (anchor + wall(min(max(n*days, -maxDays), maxDays)*day)).instant(loc)
}

// Period returns the billing period that contains at: its index n, and boundaries n and n+1 as [start, end) with
// start <= at < end. The periods of an anchor cover all time without gaps or overlaps. Period panics if the
// interval is invalid.
func Period(anchor Anchor, interval Interval, loc *time.Location, at int64) (index int, start, end int64) {
	months, days := interval.step()
	n, start, end := period(anchor.wall, months, days, loc, clamp(at))
	return int(n), start, end
}

func period(anchor wall, months, days int64, loc *time.Location, at int64) (n, start, end int64) {
	// The wall clock determines the index, but a clamped day, a jump or a time of day may make it wrong. The
	// boundaries correct it within one or two steps.
	w := wallAt(at, loc)
	if months != 0 {
		n = floorDiv(w.months()-anchor.months(), months)
	} else {
		n = floorDiv(int64(w-anchor), days*day)
	}
	start = boundary(anchor, months, days, loc, n)
	for start > at {
		n--
		start = boundary(anchor, months, days, loc, n)
	}
	end = boundary(anchor, months, days, loc, n+1)
	for end <= at {
		n++
		start, end = end, boundary(anchor, months, days, loc, n+1)
	}
	return n, start, end
}

// months returns the number of the month, counted through all years.
func (w wall) months() int64 {
	year, month, _ := w.civil().Date()
	return int64(year)*12 + int64(month)
}
