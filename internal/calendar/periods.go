package calendar

import "time"

// Periods specifies when the hours and the billing periods of one customer start. Zone, Anchor and Interval are
// required. The methods panic if Interval is invalid.
type Periods struct {
	Zone     *time.Location
	Anchor   Anchor
	Interval Interval

	// Before contains the customer's former periods, up to From, µs. At From, a new anchor, interval or zone
	// replaced the old one. A nil Before means that there were no former periods. The last former period ends at
	// From, even in its middle, and the first new period begins there. The former zone is used only for the
	// boundaries of former periods; hours always use Zone.
	Before *Periods
	From   int64

	// Cuts contains additional boundaries, µs, ascending. They also cut former periods, and the Cuts of Before
	// are ignored.
	Cuts []int64
}

// Period returns the billing period [start, end) that contains at, see the function Period.
func (p *Periods) Period(at int64) (start, end int64) {
	at = clamp(at)
	start, end = p.uncut(at)
	for _, cut := range p.Cuts {
		if cut > at {
			return start, min(end, cut)
		}
		start = max(start, cut)
	}
	return start, end
}

// uncut is like Period, but ignores Cuts.
func (p *Periods) uncut(at int64) (start, end int64) {
	if p.Before != nil && at < p.From {
		start, end = p.Before.uncut(at)
		return start, min(end, p.From)
	}
	_, start, end = Period(p.Anchor, p.Interval, p.Zone, at)
	if p.Before != nil {
		start = max(start, p.From)
	}
	return start, end
}

// Full returns the full period that contains at, without cuts, by the anchor, interval and zone in force at that
// instant. The billing period that contains at is the full period or a part of it.
func (p *Periods) Full(at int64) (start, end int64) {
	return p.Whole(at, 1)
}

// Since returns the instant from which the anchor, interval and zone in force at a given instant apply. changed
// is false if they are the customer's first.
func (p *Periods) Since(at int64) (from int64, changed bool) {
	for p.Before != nil && at < p.From {
		p = p.Before
	}
	return p.From, p.Before != nil
}

// Hour returns the hour in which usage at an instant is booked: the local hour, cut when the zone's offset
// changes and when a billing period starts. Therefore billing periods also consist of whole hours.
func (p *Periods) Hour(at int64) (start, end int64) {
	periodStart, periodEnd := p.Period(at)
	start, end = Hour(at, p.Zone)
	return max(start, periodStart), min(end, periodEnd)
}

// Whole returns the span of n full periods, the first of which contains at. It uses the anchor, interval and
// zone in force at that instant.
func (p *Periods) Whole(at int64, n int) (start, end int64) {
	at = clamp(at)
	p = p.inForce(at)
	first, start, _ := Period(p.Anchor, p.Interval, p.Zone, at)
	return start, Boundary(p.Anchor, p.Interval, p.Zone, first+n)
}

// Same reports whether the same anchor, interval and zone are in force at two instants.
func (p *Periods) Same(a, b int64) bool {
	one, other := p.inForce(clamp(a)), p.inForce(clamp(b))
	return one.Anchor == other.Anchor && one.Interval == other.Interval && one.Zone.String() == other.Zone.String()
}

// inForce returns the Periods whose anchor, interval and zone are in force at an instant.
func (p *Periods) inForce(at int64) *Periods {
	for p.Before != nil && at < p.From {
		p = p.Before
	}
	return p
}
