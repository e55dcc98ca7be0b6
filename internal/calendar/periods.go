package calendar

import "time"

// Periods is where the hours and the billing periods of one customer start. Zone, Anchor
// and Interval are required, and Interval must be valid: the methods panic where it is
// not.
type Periods struct {
	Zone     *time.Location
	Anchor   Anchor
	Interval Interval

	// Before are the periods up to From, µs, where an anchor, an interval or a zone gave way
	// to another; nil: there were no others. The last of them ends at From, where the first
	// of these begins, whatever the rest of the one that holds From is. Their zone is for
	// their boundaries only: hours are those of Zone.
	Before *Periods
	From   int64
}

// Period returns the billing period [start, end) that holds at, see the function Period.
func (p *Periods) Period(at int64) (start, end int64) {
	at = clamp(at)
	if p.Before != nil && at < p.From {
		start, end = p.Before.Period(at)
		return start, min(end, p.From)
	}
	_, start, end = Period(p.Anchor, p.Interval, p.Zone, at)
	if p.Before != nil {
		start = max(start, p.From)
	}
	return start, end
}

// Since returns the instant from which the periods that hold at are counted as they are,
// From of those; changed is false where there were never others before.
func (p *Periods) Since(at int64) (from int64, changed bool) {
	for p.Before != nil && at < p.From {
		p = p.Before
	}
	return p.From, p.Before != nil
}

// Hour returns the hour that usage at an instant is booked in: the running local hour,
// cut where the zone's offset changes and where a billing period starts, so that
// periods, too, are sums of whole hours.
func (p *Periods) Hour(at int64) (start, end int64) {
	periodStart, periodEnd := p.Period(at)
	start, end = Hour(at, p.Zone)
	return max(start, periodStart), min(end, periodEnd)
}
