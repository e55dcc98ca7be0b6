package compare

import (
	"math"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// How is the method by which a limit was simulated.
type How string

// The methods, from the exact one to the one without a result.
const (
	ByHour  How = "by_hour" // exact for hits of one unit
	Spread  How = "spread"  // simulated, with the units of an hour spread evenly
	Bounds  How = "bounds"  // only the least and the most are known
	Unknown How = "unknown" // hours do not show the result
	Admits  How = "admits"  // a soft or shadow limit, which refuses nothing
)

const hour = int64(3600e6)

// how returns the method by which a limit is simulated for a customer. aligned reports that the customer's hours
// start at the clock's hours.
func how(l *model.Limit, aligned bool) How {
	played, whole := l.ByHour()
	switch {
	case !played:
		return Unknown
	case l.Mode != model.Hard:
		return Admits
	case l.Per != "":
		return Bounds
	case l.Calendar:
		return ByHour
	case l.Window%hour != 0 || !aligned:
		return Bounds
	case whole:
		return ByHour
	}
	return Spread
}

// aligned reports whether a customer's hours start at the clock's hours.
func aligned(p *calendar.Periods, at int64) bool {
	start, _ := calendar.Hour(at, p.Zone)
	return start%hour == 0
}

// mostIn returns the most units that a limit could admit in an hour that begins at start.
func mostIn(l *model.Limit, start int64) int64 {
	if l.Per != "" { // any number of attribute values may have hits in the hour
		return math.MaxInt64
	}
	return l.MostIn(hour, fills(l, start))
}

// fills reports whether the clock's windows of a limit fill the hour that begins at start.
func fills(l *model.Limit, start int64) bool { return hour%l.Window == 0 && start%l.Window == 0 }

// leastOf returns the least units of hours[i] that a limit could admit, if all hits arrived at the worst times.
// This is the limit's capacity minus the charges of earlier hours that may still count.
func leastOf(l *model.Limit, hours []Hour, i int) int64 {
	capacity, counts := l.Capacity(), countsFor(l, hours[i].Start)
	for before := i - 1; before >= 0 && counts > 0 && hours[before].Start > hours[i].Start-counts-hour; before-- {
		if capacity -= min(capacity, hours[before].Asked()); capacity == 0 {
			return 0
		}
	}
	return min(hours[i].Asked(), capacity)
}

// countsFor returns the time, µs, for which a charge from before the hour that begins at start may count in that
// hour.
func countsFor(l *model.Limit, start int64) int64 {
	if _, whole := l.ByHour(); whole && fills(l, start) {
		return 0
	}
	return l.Lifetime() + l.Precision
}

// limitsOf compiles a plan's limits of a meter with a customer's overrides, in the same way as for hits. An
// invalid override has no effect.
func limitsOf(p *plans.Plan, meter string, overrides map[string]plans.StoredOverride) (limits []*model.Limit) {
	for i := range p.Limits {
		if p.Limits[i].Meter != meter {
			continue
		}
		if o, there := overrides[p.Limits[i].Name]; there {
			if own, bad := o.Over(p, p.Limits[i].Name); len(bad) == 0 {
				limits = append(limits, own)
				continue
			}
		}
		if l, bad := model.Compile(p.Limits[i].Spec); len(bad) == 0 {
			limits = append(limits, l)
		}
	}
	return limits
}
