package calendar

import (
	"errors"
	"fmt"
	"time"
)

// ErrInterval reports that an interval has an unknown unit or a count out of range.
var ErrInterval = errors.New("invalid interval")

// Unit is a calendar unit, by the name that the API uses.
type Unit string

// The units. A day is a day of the wall clock, which lasts 23 to 25 hours if the clock jumps.
const (
	Days   Unit = "day"
	Weeks  Unit = "week"
	Months Unit = "month"
	Years  Unit = "year"
)

// maxIntervalYears is the maximum length of an interval, so that every period lies in the years for which the
// arithmetic was verified.
const maxIntervalYears = 100

// Interval is the length of a billing period, which is Count units.
type Interval struct {
	Unit  Unit
	Count int
}

// Validate returns ErrInterval unless the unit is known and the count is in range. The count must be at least 1
// and at most a hundred years (36,500 days, 5,200 weeks or 1,200 months).
func (i Interval) Validate() error {
	var most int
	switch i.Unit {
	case Days:
		most = 365 * maxIntervalYears
	case Weeks:
		most = 52 * maxIntervalYears
	case Months:
		most = 12 * maxIntervalYears
	case Years:
		most = maxIntervalYears
	default:
		return fmt.Errorf("%w: unit %.20q is none of day, week, month, year", ErrInterval, i.Unit)
	}
	if i.Count < 1 || i.Count > most {
		return fmt.Errorf("%w: count %d of unit %s is not in 1 to %d", ErrInterval, i.Count, i.Unit, most)
	}
	return nil
}

// step returns the interval as a number of months or of days; the other number is 0. It panics if the interval
// is invalid. Plans are validated when they are written, so an invalid interval is a bug that would produce a
// wrong invoice.
func (i Interval) step() (months, days int64) {
	if err := i.Validate(); err != nil {
		panic("calendar: " + err.Error())
	}
	count := int64(i.Count)
	switch i.Unit {
	case Days:
		return 0, count
	case Weeks:
		return 0, 7 * count
	case Months:
		return count, 0
	default:
		return 12 * count, 0
	}
}

// addMonths adds whole months to a wall-clock time. If the resulting month lacks the day, the day becomes the
// month's last day.
func (w wall) addMonths(months int64) wall {
	t := w.civil()
	year, month, dayOfMonth := t.Date()
	m := int64(year)*12 + int64(month) - 1 + months
	first := time.Date(int(floorDiv(m, 12)), time.Month(m-12*floorDiv(m, 12)+1), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	timeOfDay := int64(w) - floorDiv(int64(w), day)*day
	return wall(first.UnixMicro() + int64(min(dayOfMonth, last)-1)*day + timeOfDay)
}
