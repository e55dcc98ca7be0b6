// Package parts owns the content that several page packages show: limits, usage, cost and invoices of one
// customer, and plays. It must not depend on the page that shows a part, whether portal, admin or playground.
package parts

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// LimitsData is the data of the page part that shows the limits. Streams send this part again.
type LimitsData struct {
	Stopped string // why all hits are refused, and from when on
	Coming  string // notice of the scheduled plan
	Cards   []Card
	Counted []CountedData
	Filter  bool     // there are many cards, so a filter is shown
	Hidden  []Hidden // attribute values that the forms of other attributes preserve
}

// Hidden is a hidden field of a form.
type Hidden struct{ Name, Value string }

// CountedData is a meter without limits.
type CountedData struct{ Title, Unit, Used string }

// filterFrom is the number of cards from which a page shows a filter.
const filterFrom = 13

// Standing contains all data for the page part that shows the limits.
type Standing struct {
	Quota  client.Quota
	plan   client.Plan
	next   *client.Plan // the scheduled plan, or nil
	meters page.MeterNames
	zone   *time.Location
	cards  []Card
	query  []Hidden
}

// StandingOf queries the quota and the plan of the page's customer.
func StandingOf(v *page.Visit) (*Standing, error) {
	s := &Standing{zone: v.Zone}
	query, values := Attributes(v)
	var err error
	if s.Quota, err = v.API.Quota(v.Ctx(), v.Key, query); err != nil {
		return nil, err
	}
	if s.plan, err = v.Plan(s.Quota.Plan, s.Quota.PlanVersion); err != nil {
		return nil, err
	}
	if s.next, err = NextPlan(v, s.Quota.Scheduled); err != nil {
		return nil, err
	}
	if s.meters, err = v.Meters(); err != nil {
		return nil, err
	}
	s.cards, s.query = cardsOf(v, &s.Quota, &s.plan, s.meters), values
	s.addOpen(v)
	return s, nil
}

// Attributes returns the attribute values in the page's address, which select the counters of limits per
// attribute. query contains them as parameters for the API, and values as form fields.
func Attributes(v *page.Visit) (query url.Values, values []Hidden) {
	asked := v.R.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if !strings.HasPrefix(name, "attr.") || asked.Get(name) == "" {
			delete(asked, name)
			continue
		}
		asked[name] = asked[name][:1]
		values = append(values, Hidden{name, asked.Get(name)})
	}
	return asked, values
}

// Limits returns the data of the page part that shows the limits.
func (s *Standing) Limits() LimitsData {
	data := LimitsData{
		Stopped: s.stopped(), Coming: Coming(s.Quota.Scheduled, s.next, s.zone), Cards: s.cards, Filter: len(s.cards) >= filterFrom,
		Hidden: s.query,
	}
	limited := map[string]bool{}
	for i := range s.Quota.Limits {
		if s.Quota.Limits[i].Mode != "shadow" {
			limited[s.Quota.Limits[i].Meter] = true
		}
	}
	for _, m := range s.Quota.Meters {
		if !limited[m.Meter] {
			data.Counted = append(data.Counted, CountedData{page.TitleOf(s.meters.Of(m.Meter)), words.Plural(m.Used, m.Unit), words.Number(m.Used)})
		}
	}
	return data
}

// instantOfNotice is the time format in notices.
const instantOfNotice = "2 January 2006, 15:04"

// NextPlan returns the plan of a scheduled change, or nil if there is none.
func NextPlan(v *page.Visit, scheduled *client.ScheduledChange) (*client.Plan, error) {
	if scheduled == nil {
		return nil, nil //nolint:nilnil // none is scheduled
	}
	next, err := v.Plan(scheduled.Plan, scheduled.PlanVersion)
	return &next, err
}

// Coming returns the notice of a scheduled change with the new plan and its start. It returns an empty string if
// no change is scheduled.
func Coming(scheduled *client.ScheduledChange, next *client.Plan, zone *time.Location) string {
	if scheduled == nil {
		return ""
	}
	return "From " + scheduled.At.In(zone).Format(instantOfNotice) + ", the plan is " + cmp.Or(next.Name, next.Key) + "."
}

// stopped returns the reason why hits are refused, now or later, independent of limits. It returns an empty
// string if there is none.
func (s *Standing) stopped() string {
	q := &s.Quota
	switch {
	case q.Suspension != nil:
		return "Suspended since " + q.Suspension.At.In(s.zone).Format(instantOfNotice) + ": " + q.Suspension.Reason + " Nothing is let through until this is lifted."
	case q.Ended:
		return "The subscription ended on " + q.EndsAt.In(s.zone).Format(instantOfNotice) + ". Nothing is let through any more."
	case q.EndsAt != nil:
		return "The subscription ends on " + q.EndsAt.In(s.zone).Format(instantOfNotice) + ". Nothing is let through from then on."
	}
	return ""
}

// Periods returns a string that changes when a billing period changes, because another period has another cost.
func (s *Standing) Periods() string {
	var all strings.Builder
	for i := range s.Quota.Meters {
		all.WriteString(s.Quota.Meters[i].PeriodStart.Format(time.RFC3339Nano))
	}
	return all.String()
}

// PerInterval returns the time span of a plan's base price as text, such as "a month" or "every 3 months".
func PerInterval(p *client.Plan) string {
	if n := int64(p.IntervalCount) * int64(max(1, p.BaseEvery)); n > 1 {
		return "every " + strconv.FormatInt(n, 10) + " " + words.Plural(n, p.Interval)
	}
	return "a " + p.Interval
}

// BasePrice returns a plan's base price and its time span as text.
func BasePrice(p *client.Plan) string {
	if p.BasePriceMinor == 0 {
		return "No base price"
	}
	return words.Money(p.BasePriceMinor, p.Currency) + " " + PerInterval(p)
}
