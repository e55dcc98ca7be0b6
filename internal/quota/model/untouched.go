package model

import (
	"strings"

	"quotad/internal/calendar"
)

// ValueLimits are the limits of the counter of an attribute's value; none when no limit is
// per that attribute any more.
func (t *Target) ValueLimits(attribute string) []*Limit {
	name, _, _ := strings.Cut(attribute, "=")
	for _, c := range t.per {
		if c.Key.Attribute == name {
			return c.Limits
		}
	}
	return nil
}

// Alone is a target of the customer's own counter and, unless attribute is empty, one
// value's.
func (t *Target) Alone(attribute string) *Target {
	all := t.ForReservations()
	one := &Target{
		Change: t.Change, History: t.History, asOf: t.asOf, ending: t.ending, Clock: t.Clock, Periods: t.Periods,
		Counters: all.Counters[:1:1], capped: t.capped, notifies: t.notifies,
	}
	if attribute != "" {
		one.Counters = append(one.Counters, Counter{t.Sibling(attribute), all.ValueLimits(attribute)})
	}
	return one
}

// Untouched reports whether a counter, as of an instant, says no more than a missing one
// would, now and after every change of plan, override, timezone or anchor that keeps what
// was used: nothing was charged after that instant, and nothing counts at it. One that
// was charged in the future is not.
func (t *Target) Untouched(limits []*Limit, r *Row, at int64) bool {
	if r.At > at {
		return false
	}
	m := t.moment(at)
	for _, l := range limits {
		b, log := l.stand(r.State, r.At, m)
		m.log = log
		// A closed token bucket is whole with nothing in it, and comes back as it was.
		if b.level != 0 || l.rules.resetAt(l, b, m) > at {
			return false
		}
		if l.Calendar && r.Version > 0 && r.At > at-longest(l, &t.Periods) {
			return false
		}
	}
	return true
}

// WholeAt is when, as seen from an instant on, all limits of the target's i-th counter have their
// whole quota again, µs; NoReset when one never has.
func (t *Target) WholeAt(i int, r *Row, from int64) (at int64) {
	m := t.moment(max(from, r.At))
	for _, l := range t.Counters[i].Limits {
		b, log := l.stand(r.State, r.At, m)
		m.log = log
		at = max(at, l.rules.resetAt(l, b, m))
	}
	return at
}

// longest is more than any window of a calendar's limit is long, µs, in whatever timezone
// and from whatever anchor: when these change, the window that then runs counts what was
// used in it before, and one as old as this can be in none.
func longest(l *Limit, p *calendar.Periods) int64 {
	const day = int64(24 * 3600e6)
	days := map[string]int64{"calendar_day": 1, "calendar_week": 7, "calendar_month": 31, "calendar_year": 366}[l.WindowText]
	if days == 0 { // a billing period
		days = map[calendar.Unit]int64{calendar.Days: 1, calendar.Weeks: 7, calendar.Months: 31, calendar.Years: 366}[p.Interval.Unit] * int64(p.Interval.Count)
	}
	return (days + 2) * day // a zone may repeat a day
}
