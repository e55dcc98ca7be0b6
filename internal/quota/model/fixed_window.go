package model

import "quotad/internal/calendar"

// fixedWindow admits a hit if used + cost ≤ limit. Windows start at multiples of their length since the Unix
// epoch, or at instants of the customer's calendar. The level is the number of units used in the window; aux is
// always 1.
type fixedWindow struct {
	counted
	window func(l *Limit, m moment) (start, end int64) // returns the window [start, end) that contains m.at
}

var fixedWindowDescriptor = descriptor{
	facts:  facts{kept: inBucket},
	number: FixedWindow, name: "fixed_window", window: anyWindow, takes: []string{"align"}, hours: wholeByHour, compared: true,
	compile: func(l *Limit, s *Spec, refuse refusal) rules {
		l.byPeriod = s.Window == "billing_period"
		switch {
		case s.Align == "first_hit" && l.Calendar:
			refuse("align", "a calendar's window starts where the calendar says: leave it out")
		case s.Align == "first_hit":
			l.FirstHit = true
			return firstHitWindow{}
		case l.Calendar:
			return fixedWindow{window: calendarWindows[s.Window]}
		}
		return fixedWindow{window: clockWindow}
	},
	defaults: func(s *Spec) {
		if _, calendar := calendarWindows[s.Window]; !calendar && s.Align == "" {
			s.Align = "clock"
		}
	},
}

// windowStart returns the start of the clock-aligned window that contains at (at ≥ 0).
func windowStart(at, window int64) int64 { return at - at%window }

func clockWindow(l *Limit, m moment) (start, end int64) {
	start = windowStart(m.at, l.Window)
	return start, start + l.Window
}

// calendarWindows contains the windows with names, in the customer's timezone.
var calendarWindows = map[string]func(*Limit, moment) (start, end int64){
	"calendar_day":   func(_ *Limit, m moment) (int64, int64) { return calendar.Day(m.at, m.periods.Zone) },
	"calendar_week":  func(_ *Limit, m moment) (int64, int64) { return calendar.Week(m.at, m.periods.Zone) },
	"calendar_month": func(_ *Limit, m moment) (int64, int64) { return calendar.Month(m.at, m.periods.Zone) },
	"calendar_year":  func(_ *Limit, m moment) (int64, int64) { return calendar.Year(m.at, m.periods.Zone) },
	"billing_period": func(_ *Limit, m moment) (int64, int64) {
		return m.periods.Period(m.at)
	},
}

// stand returns an empty bucket if another window has begun, because units of earlier windows do not count.
func (f fixedWindow) stand(l *Limit, stored bucket, since int64, m moment) bucket {
	if start, _ := f.window(l, m); since < start {
		return bucket{0, 1}
	}
	return bucket{stored.level, 1}
}

// bringBack keeps the level, so units used in the window ahead count in the present window.
func (fixedWindow) bringBack(_ *Limit, stored bucket, _ int64, _ moment) bucket { return stored }

func (fixedWindow) charge(_ *Limit, b bucket, cost int64, _ moment) bucket {
	return bucket{min(b.level+cost, softCap), 1}
}

func (f fixedWindow) wait(l *Limit, _ bucket, cost int64, m moment) int64 {
	if cost > l.Limit {
		return Never
	}
	_, end := f.window(l, m)
	return end - m.at
}

func (f fixedWindow) resetAt(l *Limit, b bucket, m moment) int64 {
	if b.level == 0 {
		return m.at
	}
	_, end := f.window(l, m)
	return end
}

func (f fixedWindow) giveBack(l *Limit, b bucket, charged, cost int64, m moment) bucket {
	if charged < f.countsFrom(l, b, m) {
		return b
	}
	return bucket{max(0, b.level-cost), b.aux}
}

func (f fixedWindow) backdate(l *Limit, b bucket, at, cost int64, m moment) bucket {
	if at < f.countsFrom(l, b, m) {
		return b
	}
	return bucket{min(b.level+cost, softCap), b.aux}
}

func (f fixedWindow) countsFrom(l *Limit, _ bucket, m moment) int64 {
	start, _ := f.window(l, m)
	return start
}

func (f fixedWindow) began(l *Limit, _ bucket, m moment) (int64, bool) {
	start, _ := f.window(l, m)
	return start, true
}

func (fixedWindow) lifetime(l *Limit) int64 { return l.Window }

func (fixedWindow) mostIn(l *Limit, time int64, whole bool) int64 { return l.inWindows(time, whole) }

// firstHitWindow is a fixed window that starts with the first admitted hit after the previous window ended. The
// level is the number of units used in the window, and aux is its start. If no units are used, no window runs.
type firstHitWindow struct{ counted }

func (firstHitWindow) stand(l *Limit, stored bucket, _ int64, m moment) bucket {
	if stored.level == 0 || m.at >= stored.aux+l.Window {
		return bucket{0, m.at}
	}
	return stored
}

// bringBack moves the start of a window that starts ahead to the present instant.
func (firstHitWindow) bringBack(_ *Limit, stored bucket, _ int64, m moment) bucket {
	return bucket{stored.level, min(stored.aux, m.at)}
}

func (firstHitWindow) charge(_ *Limit, b bucket, cost int64, m moment) bucket {
	if b.level == 0 {
		b.aux = m.at
	}
	return bucket{min(b.level+cost, softCap), b.aux}
}

func (firstHitWindow) wait(l *Limit, b bucket, cost int64, m moment) int64 {
	if cost > l.Limit {
		return Never
	}
	return b.aux + l.Window - m.at
}

func (firstHitWindow) resetAt(l *Limit, b bucket, m moment) int64 {
	if b.level == 0 {
		return m.at
	}
	return b.aux + l.Window
}

// giveBack removes the window if all units are returned, as if there had been no first hit.
func (f firstHitWindow) giveBack(l *Limit, b bucket, charged, cost int64, m moment) bucket {
	if charged < f.countsFrom(l, b, m) {
		return b
	}
	return bucket{max(0, b.level-cost), b.aux}
}

// backdate ignores a charge before the running window. If no window runs, the charge starts a window of its own.
func (f firstHitWindow) backdate(l *Limit, b bucket, at, cost int64, m moment) bucket {
	switch {
	case cost == 0 || b.level > 0 && at < b.aux || b.level == 0 && m.at >= at+l.Window:
		return b
	case b.level == 0:
		b.aux = at
	}
	return bucket{min(b.level+cost, softCap), b.aux}
}

func (firstHitWindow) countsFrom(_ *Limit, b bucket, _ moment) int64 { return b.aux }

func (firstHitWindow) began(_ *Limit, b bucket, _ moment) (int64, bool) { return b.aux, b.level > 0 }

func (firstHitWindow) lifetime(l *Limit) int64 { return l.Window }

// mostIn counts one window more, because windows start at hits and therefore within the time span.
func (firstHitWindow) mostIn(l *Limit, time int64, _ bool) int64 { return l.inWindows(time, false) }

func (firstHitWindow) sound(_ *Limit, b bucket, _ []int64) bool {
	return counts(b.level) && b.aux >= 0 && b.aux < lastInstant
}

// inWindows returns the maximum number of units that windows admit in a time span, µs. whole means that windows
// fill the span.
func (l *Limit) inWindows(time int64, whole bool) int64 {
	windows := ceilDiv(time, l.Window)
	if !whole {
		windows++ // the span touches one window more
	}
	return mulUpTo(l.Limit, windows)
}
