package calendar

import "time"

// Periods says where the hours and the billing periods of one customer start. Zone, Anchor and
// Interval are required. The methods panic when Interval is invalid.
type Periods struct {
	Zone     *time.Location
	Anchor   Anchor
	Interval Interval

	// Before are the customer's former periods, up to From, µs. From is when a new anchor,
	// interval or zone replaced the old one. nil means that there were none. The last former
	// period ends at From, even in its middle, and the first of the new periods begins there.
	// Before's zone is used for the boundaries of its periods only: hours are those of Zone.
	Before *Periods
	From   int64

	// Cuts are boundaries beside all others, µs, ascending. They cut former periods, too: those
	// of Before do not count.
	Cuts []int64
}

// Period returns the billing period [start, end) that holds at, see the function Period.
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

// uncut is Period without the cuts.
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

// Full returns the whole period of the anchor, interval and zone that count at at. The period
// that holds at is all of it or a part.
func (p *Periods) Full(at int64) (start, end int64) {
	return p.Whole(at, 1)
}

// Since returns the instant from which the periods at at are counted by their anchor, interval
// and zone. changed is false where these are the customer's first.
func (p *Periods) Since(at int64) (from int64, changed bool) {
	for p.Before != nil && at < p.From {
		p = p.Before
	}
	return p.From, p.Before != nil
}

// Hour returns the hour that usage at an instant is booked in. It is the running local hour,
// cut where the zone's offset changes and where a billing period starts. So periods, too, are
// sums of whole hours.
func (p *Periods) Hour(at int64) (start, end int64) {
	periodStart, periodEnd := p.Period(at)
	start, end = Hour(at, p.Zone)
	return max(start, periodStart), min(end, periodEnd)
}

// Whole returns n whole periods, the first of which is the whole period that holds at, by the
// anchor, interval and zone that count at at.
func (p *Periods) Whole(at int64, n int) (start, end int64) {
	at = clamp(at)
	p = p.inForce(at)
	first, start, _ := Period(p.Anchor, p.Interval, p.Zone, at)
	return start, Boundary(p.Anchor, p.Interval, p.Zone, first+n)
}

// Same reports whether one anchor, interval and zone count at two instants.
func (p *Periods) Same(a, b int64) bool {
	one, other := p.inForce(clamp(a)), p.inForce(clamp(b))
	return one.Anchor == other.Anchor && one.Interval == other.Interval && one.Zone.String() == other.Zone.String()
}

// inForce are the periods whose anchor, interval and zone count at at.
func (p *Periods) inForce(at int64) *Periods {
	for p.Before != nil && at < p.From {
		p = p.Before
	}
	return p
}
