package calendar

import "time"

// Periods is where the hours and the billing periods of one customer start. All three
// are required, and Interval must be valid: the methods panic where it is not.
type Periods struct {
	Zone     *time.Location
	Anchor   Anchor
	Interval Interval
}

// Period returns the billing period that holds at, see the function Period.
func (p Periods) Period(at int64) (index int, start, end int64) {
	return Period(p.Anchor, p.Interval, p.Zone, at)
}

// Hour returns the hour that usage at an instant is booked in: the running local hour,
// cut where the zone's offset changes and where a billing period starts, so that
// periods, too, are sums of whole hours.
func (p Periods) Hour(at int64) (start, end int64) {
	_, periodStart, periodEnd := p.Period(at)
	start, end = Hour(at, p.Zone)
	return max(start, periodStart), min(end, periodEnd)
}
