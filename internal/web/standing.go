package web

import (
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

// limitsData is the part of the page that a stream sends again.
type limitsData struct {
	Cards   []card
	Counted []countedData
	Filter  bool     // there are many
	Hidden  []hidden // values of attributes, which the form of another attribute keeps
}

// hidden is a field that a form keeps.
type hidden struct{ Name, Value string }

// countedData is a meter without limits.
type countedData struct{ Title, Unit, Used string }

// filterFrom is the number of cards from which a page has a filter.
const filterFrom = 13

// standing is all that the limits' part of a page is made from.
type standing struct {
	quota  client.Quota
	plan   client.Plan
	meters page.MeterNames
	cards  []card
	query  []hidden
}

// standingOf asks how the session's customer stands.
func standingOf(v *page.Visit) (*standing, error) {
	s := &standing{}
	query, values := attributes(v)
	var err error
	if s.quota, err = v.Api.Quota(v.Ctx(), v.Key, query); err != nil {
		return nil, err
	}
	if s.plan, err = v.Plan(s.quota.Plan, s.quota.PlanVersion); err != nil {
		return nil, err
	}
	if s.meters, err = v.Meters(); err != nil {
		return nil, err
	}
	s.cards, s.query = cardsOf(v, &s.quota, &s.plan, s.meters), values
	s.addOpen(v)
	return s, nil
}

// attributes are the values of limits per attribute that a page is asked for, as parameters of the
// API's.
func attributes(v *page.Visit) (query url.Values, values []hidden) {
	asked := v.R.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if !strings.HasPrefix(name, "attr.") || asked.Get(name) == "" {
			delete(asked, name)
			continue
		}
		asked[name] = asked[name][:1]
		values = append(values, hidden{name, asked.Get(name)})
	}
	return asked, values
}

func (s *standing) limits() limitsData {
	data := limitsData{Cards: s.cards, Filter: len(s.cards) >= filterFrom, Hidden: s.query}
	limited := map[string]bool{}
	for i := range s.quota.Limits {
		if s.quota.Limits[i].Mode != "shadow" {
			limited[s.quota.Limits[i].Meter] = true
		}
	}
	for _, m := range s.quota.Meters {
		if !limited[m.Meter] {
			data.Counted = append(data.Counted, countedData{page.TitleOf(s.meters.Of(m.Meter)), words.Plural(m.Used, m.Unit), words.Number(m.Used)})
		}
	}
	return data
}

// periods tells billing periods apart: another one has another cost.
func (s *standing) periods() string {
	var all strings.Builder
	for i := range s.quota.Meters {
		all.WriteString(s.quota.Meters[i].PeriodStart.Format(time.RFC3339Nano))
	}
	return all.String()
}

// perInterval is "a month" or "every 3 months".
func perInterval(p *client.Plan) string {
	if p.IntervalCount > 1 {
		return "every " + strconv.Itoa(p.IntervalCount) + " " + words.Plural(int64(p.IntervalCount), p.Interval)
	}
	return "a " + p.Interval
}
