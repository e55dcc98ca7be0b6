package calendar

import "time"

// The maximum distance of a boundary from its anchor, about 11,000 years. Boundaries beyond it count as exactly
// that far: they are outside the range of instants anyway, and the arithmetic cannot overflow.
const (
	maxMonths = 11_000 * 12
	maxDays   = 11_000 * 366
)

// Boundary returns the instant of boundary n, which may be negative. Boundary n is the anchor's wall-clock time
// plus n intervals, converted to an instant by the package's rule for clock jumps. If the month lacks the day,
// the boundary is on the month's last day. All intervals are counted from the anchor itself, so later months
// return to the anchor's day.
//
// Boundaries never decrease as n grows. Two boundaries are equal if a zone skipped a whole day. Boundary panics
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
// start <= at < end. The periods of an anchor cover all time without gap or overlap. Period panics if the
// interval is invalid.
func Period(anchor Anchor, interval Interval, loc *time.Location, at int64) (index int, start, end int64) {
	months, days := interval.step()
	n, start, end := period(anchor.wall, months, days, loc, clamp(at))
	return int(n), start, end
}

func period(anchor wall, months, days int64, loc *time.Location, at int64) (n, start, end int64) {
	// The index computed from the wall clock may be off because of a clamped day, a clock jump, or the time of
	// day. The following loops correct it in one or two steps.
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

// months returns the number of months since the start of year 0.
func (w wall) months() int64 {
	year, month, _ := w.civil().Date()
	return int64(year)*12 + int64(month)
}
