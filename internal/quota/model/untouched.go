package model

import (
	"strings"

	"quotad/internal/calendar"
)

// ValueLimits returns the limits of the counter of an attribute's value. The result is empty if limits are no
// longer per that attribute.
func (t *Target) ValueLimits(attribute string) []*Limit {
	name, _, _ := strings.Cut(attribute, "=")
	for _, c := range t.per {
		if c.Key.Attribute == name {
			return c.Limits
		}
	}
	return nil
}

// Alone returns a target of the customer's own counter and, unless attribute is empty, of one value's counter.
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

// Untouched reports whether a counter at an instant is equivalent to a missing counter, now and after every change
// of plan, override, timezone or anchor that keeps the used units. This requires that nothing was charged after
// the instant and that no units count at the instant. A counter that was charged in the future is not untouched.
func (t *Target) Untouched(limits []*Limit, r *Row, at int64) bool {
	if r.At > at {
		return false
	}
	m := t.moment(at)
	for _, l := range limits {
		b, log := l.stand(r.State, r.At, m)
		m.log = log
		// A closed token bucket has its whole quota when it is empty, and returns unchanged.
		if b.level != 0 || l.rules.resetAt(l, b, m) > at {
			return false
		}
		if l.Calendar && r.Version > 0 && r.At > at-longest(l, &t.Periods) {
			return false
		}
	}
	return true
}

// WholeAt returns the instant at which all limits of the target's i-th counter have their whole quota again, µs,
// computed from the instant from on. It returns NoReset if a limit never has its whole quota again.
func (t *Target) WholeAt(i int, r *Row, from int64) (at int64) {
	m := t.moment(max(from, r.At))
	for _, l := range t.Counters[i].Limits {
		b, log := l.stand(r.State, r.At, m)
		m.log = log
		at = max(at, l.rules.resetAt(l, b, m))
	}
	return at
}

// longest returns more than the length of any calendar window of a limit, µs, in any timezone and from any anchor.
// When the timezone or the anchor changes, the then running window counts the units that were used in it before.
// Units of this age belong to no such window.
func longest(l *Limit, p *calendar.Periods) int64 {
	const day = int64(24 * 3600e6)
	days := map[string]int64{"calendar_day": 1, "calendar_week": 7, "calendar_month": 31, "calendar_year": 366}[l.WindowText]
	if days == 0 { // a billing period
		days = map[calendar.Unit]int64{calendar.Days: 1, calendar.Weeks: 7, calendar.Months: 31, calendar.Years: 366}[p.Interval.Unit] * int64(p.Interval.Count)
	}
	return (days + 2) * day // a timezone may repeat a day
}
