package plans

import (
	"errors"
	"fmt"

	"quotad/internal/calendar"
)

// BillingInterval returns the length of the plan's billing period.
func (in *PlanInput) BillingInterval() calendar.Interval {
	return calendar.Interval{Unit: calendar.Unit(in.Interval), Count: in.IntervalCount}
}

// SameIntervalAndCurrency rejects a billing interval or a currency that differs from the plan's latest
// version. Another interval would cut the running periods of all the plan's customers in the middle, and
// a customer's currency is fixed. A customer that moves here from another plan has the new interval from
// its next period on.
func (p *Plan) SameIntervalAndCurrency(in *PlanInput) error {
	var bad faults
	if p.BillingInterval() != in.BillingInterval() {
		bad.add("interval", "must stay %s, interval_count %d: the plan's customers are in the midst of such periods. Write another plan, and put them on it",
			p.Interval, p.IntervalCount)
	}
	if p.Currency != in.Currency {
		bad.add("currency", "must stay %s: all versions of a plan have one currency. Write another plan", p.Currency)
	}
	return bad.err()
}

// Periods returns the calendar of a customer's hours and billing periods under a version of the plan.
func (c *Customer) Periods(p *Plan) (calendar.Periods, error) {
	periods, err := StoredPeriods(c.Key, c.Timezone, c.BillingAnchor, c.Former, c.Cuts)
	periods.Interval = p.BillingInterval()
	return periods, err
}

// StoredPeriods reads the periods that are stored with a customer. The result lacks the interval, because
// the plan defines it.
func StoredPeriods(key, timezone, anchor string, former []FormerPeriods, cuts []int64) (p calendar.Periods, err error) {
	if p.Cuts = cuts; len(cuts) == 0 {
		p.Cuts = nil
	}
	if p.Zone, err = calendar.Location(timezone); err == nil {
		p.Anchor, err = calendar.ParseAnchor(anchor)
	}
	if err == nil {
		err = before(&p, former)
	}
	if err != nil {
		err = fmt.Errorf("customer %q is stored with a bad timezone or anchor: %w", key, err)
	}
	return p, err
}

// FormerPeriods contains the rules of a customer's billing periods until an instant, µs since the Unix
// epoch, as stored in customers.former_periods.
type FormerPeriods struct {
	Until    int64  `json:"until"`
	Timezone string `json:"timezone"`
	Anchor   string `json:"anchor"`
	Interval string `json:"interval"`
	Count    int    `json:"count"`
}

func (f *FormerPeriods) interval() calendar.Interval {
	return calendar.Interval{Unit: calendar.Unit(f.Interval), Count: f.Count}
}

// before links the former periods to the present periods. former begins with the oldest.
func before(p *calendar.Periods, former []FormerPeriods) error {
	var last *calendar.Periods
	for i := range former {
		f := &former[i]
		zone, bad := calendar.Location(f.Timezone)
		anchor, err := calendar.ParseAnchor(f.Anchor)
		if err = errors.Join(bad, err, f.interval().Validate()); err != nil {
			return err
		}
		link := &calendar.Periods{Zone: zone, Anchor: anchor, Interval: f.interval(), Before: last}
		if last != nil {
			link.From = former[i-1].Until
		}
		last = link
	}
	if p.Before = last; last != nil {
		p.From = former[len(former)-1].Until
	}
	return nil
}
