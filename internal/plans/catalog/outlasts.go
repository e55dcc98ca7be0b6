package catalog

import (
	"context"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Outlasting returns a limit of the default plan that counts hits for longer than ttl, and its window.
// Both are empty if there is no such limit or no default plan. An anonymous customer that is idle for ttl
// is forgotten, so a customer that waits for ttl would have the whole limit again.
func (c *Catalog) Outlasting(ctx context.Context, ttl time.Duration) (limit, window string) {
	if c.options.DefaultPlan == "" {
		return "", ""
	}
	v, err := c.defaultVersion(ctx, c.memory.Load())
	if err != nil {
		return "", "" // see CheckDefaultPlan
	}
	for _, m := range v.order {
		for _, l := range m.limits {
			if outlasts(l, v.plan, ttl.Microseconds()) {
				return l.Name, l.WindowText
			}
		}
	}
	return "", ""
}

// calendarDays contains the greatest number of days of each calendar window and interval.
var calendarDays = map[string]int64{
	"calendar_day": 1, "calendar_week": 7, "calendar_month": 31, "calendar_year": 366,
	"day": 1, "week": 7, "month": 31, "year": 366,
}

// outlasts reports whether a hit on the limit may count for longer than ttl, µs.
func outlasts(l *model.Limit, p *plans.Plan, ttl int64) bool {
	switch {
	case l.WindowText == "billing_period":
		return calendarDays[p.Interval]*int64(p.IntervalCount) > ttl/24/time.Hour.Microseconds()
	case l.Calendar:
		return calendarDays[l.WindowText] > ttl/24/time.Hour.Microseconds()
	}
	return l.Lifetime() > ttl
}
