package oracle

import (
	"time"
	_ "time/tzdata" // where the machine has none
)

// All instants are µs since the Unix epoch. A wall is what a clock on the wall shows, as µs
// since 1970-01-01T00:00:00 on that wall.
const (
	second = int64(1_000_000)
	hour   = 3600 * second
	day    = 24 * hour
)

// A Rhythm is what boundaries are counted from.
type Rhythm struct {
	Anchor string // wall clock, such as 2026-01-31T00:00:00
	Zone   string
	Unit   string // day, week, month or year
	Count  int
}

// Boundary is boundary n: the anchor's wall clock plus n intervals.
func (r Rhythm) Boundary(n int) int64 {
	a := parseWall(r.Anchor)
	switch n *= r.Count; r.Unit {
	case "day":
		return instant(a+int64(n)*day, r.Zone)
	case "week":
		return instant(a+int64(n)*7*day, r.Zone)
	case "year":
		n *= 12
	}
	t := time.UnixMicro(a).UTC()
	first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, n, 0)
	last := first.AddDate(0, 1, -1).Day()
	date := first.AddDate(0, 0, min(t.Day(), last)-1)
	return instant(date.UnixMicro()+a-a/day*day, r.Zone)
}

// Around is the whole period [from, to) that holds at.
func (r Rhythm) Around(at int64) (from, to int64) {
	n := 0
	for r.Boundary(n) > at {
		n--
	}
	for r.Boundary(n+1) <= at {
		n++
	}
	return r.Boundary(n), r.Boundary(n + 1)
}

func parseWall(text string) int64 {
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

var locations = map[string]*time.Location{}

// offset is what the zone's clocks are ahead of UTC at an instant.
func offset(at int64, zone string) int64 {
	if locations[zone] == nil {
		l, err := time.LoadLocation(zone) //nolint:forbidigo // the oracle shares nothing with calendar
		if err != nil {
			panic(err)
		}
		locations[zone] = l
	}
	_, ahead := time.UnixMicro(at).In(locations[zone]).Zone()
	return int64(ahead) * second
}

// instant is when the clocks of a zone show a wall time. Where they show it twice, or never, the
// offset in force before they jump counts. A day before is before the jump, as no two jumps of
// the zones that are tried lie within two days.
func instant(wall int64, zone string) int64 {
	before := offset(wall-30*hour, zone)
	if at := wall - before; offset(at, zone) == before {
		return at // also the first one of two
	}
	after := offset(wall+30*hour, zone)
	if at := wall - after; offset(at, zone) == after {
		return at
	}
	return wall - before // in the gap
}

// hourOf is the start of the hour, of the zone's clocks, that holds an instant. The hour begins
// again where the clocks jump.
func hourOf(at int64, zone string) int64 {
	wall := at + offset(at, zone)
	start := at - (wall - wall/hour*hour)
	for offset(start, zone) != offset(at, zone) {
		start += second // they jumped within the hour
	}
	return start
}
